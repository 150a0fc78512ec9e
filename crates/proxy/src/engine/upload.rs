//! Reading a request body while its response is awaited.

use bytes::Bytes;
use levee_vocab::LinkId;

use super::Core;
use super::drive::receive;
use crate::chunked::Incoming;
use crate::connection::{Connection, Inbound, Phase};
use crate::flow::{Fed, Flow};

/// What became of a piece of input.
enum Passed {
    /// All of it was passed on.
    All,
    /// The body is over after so many bytes.
    Whole(usize),
    /// There is no room after so many bytes.
    Full(usize),
    /// It is no body, or nobody wants it.
    Broken,
}

impl Core {
    /// Passes on what has come of a request body.
    pub(super) fn upload(&mut self, connection: &mut Connection, token: u64) {
        let Phase::Answering(answer) = &mut connection.phase else {
            return;
        };
        let Some(flow) = answer.flow.as_mut().filter(|flow| flow.is_uploading()) else {
            return;
        };
        if flow.feed_held() != Fed::Taken {
            return;
        }
        let (mut gathered, mut pieces) = (None, 0);
        while flow.is_uploading() {
            if pieces == PIECES_MAX {
                self.ready.push(token);
                break;
            }
            pieces += 1;
            if connection.incoming.is_done() {
                gathered = flow.finish_upload();
                break;
            }
            let mut input = std::mem::take(&mut connection.unread);
            if input.is_empty() {
                input = self.pool.take();
                input.resize(PIECE, 0);
                let received = receive(&mut connection.socket, &mut connection.inbound, &mut input);
                input.truncate(*received.as_ref().unwrap_or(&0));
                let is_over = received.is_err() || connection.inbound == Inbound::Ended;
                if input.is_empty() {
                    self.pool.give(input);
                    match (is_over, received) {
                        (true, Ok(_)) if flow.is_tunnel() => gathered = flow.finish_upload(),
                        (true, _) => flow.break_off(),
                        (false, _) => {}
                    }
                    break;
                }
            }
            let passed = pass(flow, &mut connection.incoming, &input);
            let used = match passed {
                Passed::All | Passed::Broken => input.len(),
                Passed::Whole(used) | Passed::Full(used) => used,
            };
            connection.unread = self.pool.copy(&input[used..]);
            self.pool.give(input);
            match passed {
                Passed::All | Passed::Whole(_) => {}
                Passed::Full(_) => break,
                Passed::Broken => {
                    connection.incoming = Incoming::Lost;
                    flow.break_off();
                }
            }
        }
        self.pass_on(gathered);
    }

    fn pass_on(&self, gathered: Option<(LinkId, Bytes)>) {
        if let Some((link, lines)) = gathered {
            self.hand_over(link, lines);
        }
    }
}

/// Most that is read of a body at once.
const PIECE: usize = 16 * 1024;
/// Most pieces of one body in one turn.
const PIECES_MAX: usize = 32;

fn pass(flow: &mut Flow, incoming: &mut Incoming, input: &[u8]) -> Passed {
    let mut used = 0;
    while used < input.len() {
        let Ok(step) = incoming.take(&input[used..]) else {
            return Passed::Broken;
        };
        used += step.used;
        if step.trailers > 0 {
            flow.feed_trailers(&input[used - step.trailers..used]);
        }
        let fed = match step.data {
            0 => Fed::Taken,
            data => flow.feed(&input[used - data..used]),
        };
        match fed {
            Fed::Taken if incoming.is_done() => return Passed::Whole(used),
            Fed::Taken => {}
            Fed::Full => return Passed::Full(used),
            Fed::Closed => return Passed::Broken,
        }
    }
    Passed::All
}
