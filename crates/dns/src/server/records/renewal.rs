//! A zone file that was edited while its zone is served.
//!
//! Records of the file come and go with it. What updates put in stays, but for what the new file
//! leaves no room for: a name that leads to another has nothing beside that, and the file has the
//! first word. The serial follows that of the file where it is newer, else it counts up, so that
//! secondaries see each change and nobody has to think of it.

use hickory_proto::rr::{RData, Record, RecordType};

use super::{Records, Source};

impl Records {
    /// What is to be served once `file` has been read, where that is anything else than now.
    pub(crate) fn renewed(&self, file: Self) -> Option<Self> {
        let mut next = file;
        for (record, source) in self.entries() {
            match source {
                Source::File => {}
                Source::Update => next.keep(&record),
            }
        }
        let is_newer = is_newer(next.serial(), self.serial());
        if !is_newer {
            next.set_serial(self.serial());
            if next.names == self.names && next.soa == self.soa {
                return None;
            }
            next.note_change();
        }
        Some(next)
    }

    /// The serial as it is written down.
    pub(crate) fn serial_text(&self) -> String {
        format!("{SERIAL}{}\n", self.serial())
    }

    /// The serial in a line of what was written down, if it is one.
    pub(crate) fn serial_in(line: &str) -> Option<u32> {
        line.strip_prefix(SERIAL)?.parse().ok()
    }

    /// An earlier run of this server ended with the serial `earlier`, so this one begins behind it:
    /// secondaries look at a zone again only where its serial is newer than theirs.
    pub(crate) fn come_after(&mut self, earlier: u32) {
        if !is_newer(self.serial(), earlier) {
            self.set_serial(earlier.wrapping_add(1));
        }
    }

    fn keep(&mut self, record: &Record) {
        let is_other_name = record.record_type() == RecordType::CNAME;
        let is_taken = match is_other_name {
            true => self.has_records(&record.name),
            false => self.set(&record.name, RecordType::CNAME).is_some(),
        };
        if !is_taken {
            self.put(record, Source::Update);
        }
    }

    fn set_serial(&mut self, serial: u32) {
        if let RData::SOA(soa) = &mut self.soa.data {
            soa.serial = serial;
        }
    }
}

/// What stands before the serial where it is written down: a comment to whoever reads records.
const SERIAL: &str = "; serial ";

/// Whether a serial comes after another: they go round.
//= RFC 1982 section 3.2
const fn is_newer(serial: u32, than: u32) -> bool {
    let ahead = serial.wrapping_sub(than);
    ahead > 0 && ahead < 1 << 31
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::Name;

    use super::*;

    const TOP: &str = "$TTL 30\n@ IN NS ns\nns IN A 192.0.2.53\n";

    fn apex() -> Name {
        Name::from_ascii("example.org.").unwrap()
    }

    fn file(serial: u32, rest: &str) -> Records {
        let text = format!("{TOP}@ IN SOA ns admin {serial} 60 30 3600 5\n{rest}");
        Records::read(&apex(), &text, 0).unwrap()
    }

    fn update(records: &mut Records, line: &str) {
        let text = format!("{TOP}@ IN SOA ns admin 1 60 30 3600 5\n{line}");
        let read = Records::read(&apex(), &text, 0).unwrap();
        for (record, _) in read.entries().filter(|(one, _)| one.name.num_labels() == 3) {
            if record.name != Name::from_ascii("ns.example.org.").unwrap() {
                records.put(&record, Source::Update);
            }
        }
    }

    fn told(records: &Records) -> Vec<String> {
        let all = records
            .all()
            .map(|one| format!("{} {}", one.name, one.data));
        all.filter(|line| line.starts_with("www")).collect()
    }

    #[test]
    fn records_of_the_file_come_and_go_and_those_of_updates_stay() {
        let mut before = file(7, "www IN A 192.0.2.1\nwww IN A 192.0.2.2\n");
        update(&mut before, "www IN A 192.0.2.9\n");
        let after = before.renewed(file(7, "www IN A 192.0.2.3\n")).unwrap();
        let expected = ["www.example.org. 192.0.2.3", "www.example.org. 192.0.2.9"];
        assert_eq!(told(&after), expected);
        assert_eq!(after.serial(), 8);
        assert_eq!(after.updated_text().lines().count(), 1);
    }

    #[test]
    fn a_file_that_says_the_same_changes_nothing() {
        let mut before = file(7, "www IN A 192.0.2.1\n");
        update(&mut before, "www IN A 192.0.2.9\n");
        assert!(before.renewed(file(7, "www IN A 192.0.2.1\n")).is_none());
        before.note_change();
        assert!(before.renewed(file(7, "www IN A 192.0.2.1\n")).is_none());
    }

    #[test]
    fn a_newer_serial_of_the_file_is_taken_and_an_older_one_counts_up() {
        let before = file(4_294_967_295, "");
        let serial = |file: Records| before.renewed(file).map(|next| next.serial());
        assert_eq!(serial(file(4_294_967_295, "")), None);
        assert_eq!(serial(file(5, "")), Some(5), "serials go round");
        assert_eq!(serial(file(4_000_000_000, "x IN A 192.0.2.1\n")), Some(0));
    }

    #[test]
    fn what_the_new_file_leaves_no_room_for_goes() {
        let mut before = file(7, "");
        update(&mut before, "www IN A 192.0.2.9\n");
        update(&mut before, "blog IN CNAME www\n");
        let other = "www IN CNAME pool\nblog IN A 192.0.2.4\n";
        let after = before.renewed(file(7, other)).unwrap();
        assert_eq!(told(&after), ["www.example.org. pool.example.org."]);
        assert_eq!(after.updated_text(), "");
    }
}
