//! One answer, read to its last byte.

use std::io::{self, Read};

use httparse::{EMPTY_HEADER, Response, Status};

/// Reads a whole answer and gives the bytes of its body. An answer other than 200, or one without
/// its length, is an error: no workload expects it.
pub(super) fn read(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<u64> {
    let mut filled = 0;
    loop {
        let got = stream.read(&mut buffer[filled..])?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += got;
        if let Some((head, body)) = head_of(&buffer[..filled])? {
            let mut left = body.saturating_sub((filled - head) as u64);
            while left > 0 {
                let room = buffer
                    .len()
                    .min(usize::try_from(left).unwrap_or(usize::MAX));
                match stream.read(&mut buffer[..room])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    got => left -= got as u64,
                }
            }
            return Ok(body);
        }
    }
}

/// Lengths of head and body, once the head is whole.
fn head_of(bytes: &[u8]) -> io::Result<Option<(usize, u64)>> {
    let mut headers = [EMPTY_HEADER; 64];
    let mut response = Response::new(&mut headers);
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    match response.parse(bytes) {
        Ok(Status::Partial) => Ok(None),
        Ok(Status::Complete(head)) => {
            if response.code != Some(200) {
                return Err(invalid(format!("status {:?}", response.code)));
            }
            let length = response
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case("content-length"))
                .and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
            match length {
                Some(body) => Ok(Some((head, body))),
                None => Err(invalid("no Content-Length".to_owned())),
            }
        }
        Err(error) => Err(invalid(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Option<u64>) {
        let read = read(&mut answer.as_bytes(), &mut [0; 256]);
        assert_eq!(read.ok(), expected, "{answer}");
    }

    #[test]
    fn an_answer_ends_where_its_length_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Some(3));
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", None);
        check("HTTP/1.1 200 OK\r\n\r\nabc", None);
        check("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", None);
        check("HTTP/1.1 200 OK\r\nConte", None);
        let long = "x".repeat(1000);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{long}");
        check(&answer, Some(1000));
    }
}
