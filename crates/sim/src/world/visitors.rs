//! Visitors: they come, follow redirects, ask for what a page embeds, and leave after seven
//! seconds.

use levee_control::{RecognisedBy, Redirectability, Visitor, Visitors};
use levee_vocab::HostName;

use crate::world::crowd::{PATIENCE, Wants};
use crate::world::event::{Arrival, Event};
use crate::world::network::Place;
use crate::world::request::{Answer, CrowdId, Fate, Request, RequestId, Role};
use crate::world::way_back::Word;
use crate::world::{SiteId, World};

/// Bytes of an answer to HEAD.
const HEAD_ANSWER_BYTES: u64 = 250;

/// One request as a log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Number of the file.
    pub file: usize,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Whether a rescue server may answer it.
    pub redirectability: Redirectability,
}

impl World {
    pub(crate) fn visitor_comes(&mut self, id: CrowdId) {
        let crowd = &mut self.crowds[id.0];
        if crowd.settings.until.is_some_and(|until| self.now > until) {
            return;
        }
        let number = crowd.count_visitor();
        let site = crowd.settings.site;
        let wants = crowd.settings.wants.clone();
        if let Some(at) = crowd.next_arrival(self.now) {
            self.queue.plan(at, Event::VisitorComes(id));
        }
        let name = self.sites[site.0].name().clone();
        let redirectability = self.redirectability_at(site);
        let files = &self.sites[site.0].settings.files;
        let visitor = match wants {
            Wants::FilesInTurn | Wants::WholePage | Wants::Preview => Visitor::Reader,
            Wants::Crawl => Visitor::Crawler(RecognisedBy::Name),
        };
        let (file, role, bytes) = match wants {
            Wants::FilesInTurn | Wants::Crawl => {
                let file = (number % files.len().max(1) as u64) as usize;
                (file, Role::Single, files.get(file).copied())
            }
            Wants::WholePage => (0, Role::Page, files.first().copied()),
            Wants::Preview => (0, Role::Probe, Some(HEAD_ANSWER_BYTES)),
        };
        let request = Request {
            crowd: id,
            origin: site,
            file,
            bytes: bytes.unwrap_or(HEAD_ANSWER_BYTES),
            visitor,
            redirectability,
            role,
            host: name,
            started: self.now,
            patience: PATIENCE,
            parked: None,
            hops: 0,
            word: Word::None,
        };
        self.visit(request);
    }

    /// Where visitors come either way, those of a crowd come by HTTP.
    fn redirectability_at(&self, site: SiteId) -> Redirectability {
        match self.sites[site.0].settings.parameters.visitors {
            Visitors::Http | Visitors::Both => Redirectability::Allowed,
            Visitors::Https => Redirectability::ByHttps,
        }
    }

    /// Ends a crowd: nobody else comes.
    pub fn end_crowd(&mut self, id: CrowdId) {
        self.crowds[id.0].settings.until = Some(self.now);
    }

    /// One visitor of `crowd` asks for a file of its site by another name, as somebody does who has
    /// an old page open.
    pub fn visit_by_name(&mut self, crowd: CrowdId, host: HostName) {
        let origin = self.crowds[crowd.0].settings.site;
        let bytes = self.sites[origin.0].settings.files.first().copied();
        let request = Request {
            crowd,
            origin,
            file: 0,
            bytes: bytes.unwrap_or(HEAD_ANSWER_BYTES),
            visitor: Visitor::Reader,
            redirectability: self.redirectability_at(origin),
            role: Role::Single,
            host,
            started: self.now,
            patience: PATIENCE,
            parked: None,
            hops: 0,
            word: Word::None,
        };
        self.visit(request);
    }

    /// Somebody of `crowd` asks for something now, because a log says so.
    pub fn visit_as_logged(&mut self, crowd: CrowdId, logged: Logged) {
        let origin = self.crowds[crowd.0].settings.site;
        let site = &mut self.sites[origin.0];
        let host = site.name().clone();
        let files = &mut site.settings.files;
        if files.len() <= logged.file {
            files.resize(logged.file + 1, 0);
        }
        // Of one file a log has whole answers, parts, and answers without a body.
        files[logged.file] = files[logged.file].max(logged.bytes);
        // Who downloads something large waits as long as it takes where nobody else does.
        let patience = PATIENCE + site.settings.parameters.link.time_for(logged.bytes);
        self.visit(Request {
            crowd,
            origin,
            file: logged.file,
            bytes: logged.bytes,
            visitor: Visitor::Reader,
            redirectability: logged.redirectability,
            role: Role::Single,
            host,
            started: self.now,
            patience,
            parked: None,
            hops: 0,
            word: Word::None,
        });
    }

    fn visit(&mut self, request: Request) {
        self.crowds[request.crowd.0].tally.offered += 1;
        let id = self.requests.begin(request);
        self.ask_by_name(id);
    }

    /// Sends a request to whoever answers to the name that it asks for.
    fn ask_by_name(&mut self, id: RequestId) {
        let Some(request) = self.requests.find(id) else {
            return;
        };
        let Some(&site) = self.names.get(&request.host) else {
            return self.fail(id);
        };
        let what = Arrival::Request(id);
        let event = Event::Arrives { site, what };
        self.carry(Place::Visitors, Place::Site(site), event);
    }

    pub(crate) fn visitor_reads(&mut self, id: RequestId, answer: Answer) {
        if self.has_left(id) {
            return self.fail(id);
        }
        match answer {
            Answer::Whole => self.answered(id),
            Answer::Refused => {
                self.end(id, Fate::Refused);
            }
            Answer::Broken => self.fail(id),
            Answer::Redirect(host, word) => {
                let Some(request) = self.requests.find_mut(id) else {
                    return;
                };
                request.host = host;
                request.word = word;
                request.parked = None;
                request.hops += 1;
                self.watch
                    .check_hops(self.now, request.origin, request.hops);
                if request.hops > HOPS_MAX {
                    self.fail(id);
                } else {
                    self.ask_by_name(id);
                }
            }
        }
    }

    fn answered(&mut self, id: RequestId) {
        let Some(request) = self.end(id, Fate::Answered) else {
            return;
        };
        let origin = &self.sites[request.origin.0];
        let files = match request.role {
            Role::Single => return,
            Role::Page | Role::Probe => origin.settings.files.clone(),
        };
        let (host, rest) = match request.role {
            Role::Single => return,
            Role::Page => (request.host.clone(), 1..files.len()),
            Role::Probe => (origin.name().clone(), 0..files.len().min(2)),
        };
        for file in rest {
            self.visit(Request {
                file,
                bytes: files[file],
                role: Role::Single,
                host: host.clone(),
                started: self.now,
                patience: PATIENCE,
                parked: None,
                hops: 0,
                word: Word::None,
                ..request
            });
        }
    }

    pub(crate) fn has_left(&self, id: RequestId) -> bool {
        let request = self.requests.find(id);
        request.is_some_and(|request| self.now.since(request.started) > request.patience)
    }

    pub(crate) fn fail(&mut self, id: RequestId) {
        self.end(id, Fate::Failed);
    }

    fn end(&mut self, id: RequestId, fate: Fate) -> Option<Request> {
        let request = self.requests.end(id)?;
        let latency = self.now.since(request.started);
        let tally = &mut self.crowds[request.crowd.0].tally;
        tally.count(fate, request.bytes, latency);
        Some(request)
    }

    /// The name under which `rescuer` serves `origin` or did so last.
    pub fn find_alias(&self, origin: SiteId, rescuer: SiteId) -> Option<HostName> {
        let name = self.sites[origin.0].name();
        let records = &self.sites[rescuer.0].records;
        let given = records.iter().filter(|record| record.origin.host == *name);
        let last = given.max_by_key(|record| record.number)?;
        Some(last.alias.clone())
    }
}

/// Browsers give up after about twenty redirects; so many is a loop.
const HOPS_MAX: u8 = 20;
