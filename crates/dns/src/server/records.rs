//! The records of one zone: read from a zone file, looked up, and changed.
//!
//! A map from names in canonical order, so that what lies below a name follows it. Records of the
//! file are the operator's and stay; those that were put in by updates are known apart, because
//! only they must be written down. The serial number grows with each change.

mod renewal;
mod zone_file;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinEncodable};

pub use self::zone_file::ZoneFileError;
use self::zone_file::parse;

/// Most records that updates may put into a zone.
const UPDATED_MAX: usize = 20_000;

/// The records of one zone.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    apex: Name,
    names: BTreeMap<Name, BTreeMap<RecordType, Set>>,
    soa: Record,
    updated: usize,
}

/// All records of one type that one name has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) ttl: u32,
    pub(crate) values: Vec<Entry>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) data: RData,
    pub(crate) source: Source,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The zone file.
    File,
    /// An update.
    Update,
}

/// A line of what outlived an earlier run.
#[derive(Debug)]
pub(crate) enum KeptLine {
    Serial(u32),
    Record(Box<Record>),
}

impl KeptLine {
    /// None where it is none of ours.
    pub(crate) fn read(line: &str) -> Option<Self> {
        if let Some(serial) = Records::serial_in(line) {
            return Some(Self::Serial(serial));
        }
        let (bytes, _) = line.split_once(" ;").unwrap_or((line, ""));
        let bytes = STANDARD.decode(bytes).ok()?;
        let record = Record::from_bytes(&bytes).ok()?;
        Some(Self::Record(Box::new(record)))
    }
}

/// What a zone has for a question.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// These.
    Set(RecordType, &'a Set),
    /// Another name, where to look on.
    OtherName(&'a Set),
    /// Nothing of this type, though the name is there.
    NoData,
    /// No such name.
    NoName,
    /// Others know: the name of the zone that they keep, and their names.
    Delegated(Name, &'a Set),
}

impl Records {
    /// Reads the zone file `text` of `apex`. Its serial is `serial` where the file's is older.
    pub(crate) fn read(apex: &Name, text: &str, serial: u32) -> Result<Self, ZoneFileError> {
        let sets = parse(apex, text)?;
        let mut records = Self {
            apex: apex.clone(),
            names: BTreeMap::new(),
            soa: Record::update0(apex.clone(), 0, RecordType::SOA),
            updated: 0,
        };
        for set in sets.values() {
            for record in set.records_without_rrsigs() {
                if !apex.zone_of(&record.name) {
                    return Err(ZoneFileError::Foreign {
                        name: record.name.to_ascii(),
                        zone: apex.to_ascii(),
                    });
                }
                records.put(record, Source::File);
            }
        }
        records.check(serial)?;
        Ok(records)
    }

    fn check(&mut self, serial: u32) -> Result<(), ZoneFileError> {
        let zone = || self.apex.to_ascii();
        let mut all = self.names.iter();
        let other = all.find(|(_, sets)| sets.contains_key(&RecordType::CNAME) && sets.len() > 1);
        if let Some((name, _)) = other {
            let name = name.to_ascii();
            return Err(ZoneFileError::OtherName { name });
        }
        let soas = self.names.iter().filter_map(|(name, sets)| {
            let set = sets.get(&RecordType::SOA)?;
            Some((name, set))
        });
        let soas: Vec<(&Name, &Set)> = soas.collect();
        let [(name, set)] = soas[..] else {
            return Err(ZoneFileError::Soa { zone: zone() });
        };
        let ([one], true) = (&set.values[..], *name == self.apex) else {
            return Err(ZoneFileError::Soa { zone: zone() });
        };
        let RData::SOA(soa) = &one.data else {
            return Err(ZoneFileError::Soa { zone: zone() });
        };
        let mut soa = soa.clone();
        soa.serial = soa.serial.max(serial);
        self.soa = Record::from_rdata(self.apex.clone(), set.ttl, RData::SOA(soa));
        match self.set(&self.apex, RecordType::NS) {
            Some(_) => Ok(()),
            None => Err(ZoneFileError::NameServer { zone: zone() }),
        }
    }

    /// The zone's name.
    pub(crate) const fn apex(&self) -> &Name {
        &self.apex
    }

    /// The SOA record with the serial of now.
    pub(crate) const fn soa(&self) -> &Record {
        &self.soa
    }

    /// The same for an answer that says no: how long that may be remembered is its TTL.
    //= RFC 2308 section 3
    pub(crate) fn soa_of_denial(&self) -> Record {
        let mut soa = self.soa.clone();
        if let RData::SOA(data) = &soa.data {
            soa.ttl = soa.ttl.min(data.minimum);
        }
        soa
    }

    /// The serial number.
    pub(crate) const fn serial(&self) -> u32 {
        if let RData::SOA(SOA { serial, .. }) = &self.soa.data {
            *serial
        } else {
            0
        }
    }

    /// Counts the serial up: something has changed.
    pub(crate) fn note_change(&mut self) {
        if let RData::SOA(soa) = &mut self.soa.data {
            soa.serial = soa.serial.wrapping_add(1);
        }
    }

    /// The records of one type that `name` itself has.
    pub(crate) fn set(&self, name: &Name, record_type: RecordType) -> Option<&Set> {
        self.names.get(name)?.get(&record_type)
    }

    /// Whether `name` has any record.
    pub(crate) fn has_records(&self, name: &Name) -> bool {
        self.names.contains_key(name)
    }

    /// What there is for `name`, which lies in this zone and is in lower case.
    //= RFC 1034 section 4.3.2
    pub(crate) fn find(&self, name: &Name, record_type: RecordType) -> Found<'_> {
        if let Some(found) = self.delegation(name, record_type) {
            return found;
        }
        if let Some(sets) = self.names.get(name) {
            return of_sets(sets, record_type);
        }
        if self.exists(name) {
            return Found::NoData;
        }
        //= RFC 4592 section 3.3.1
        let mut encloser = name.base_name();
        while !self.exists(&encloser) {
            encloser = encloser.base_name();
        }
        let star = encloser.prepend_label("*").ok();
        match star.and_then(|star| self.names.get(&star)) {
            Some(sets) => of_sets(sets, record_type),
            None => Found::NoName,
        }
    }

    fn delegation(&self, name: &Name, record_type: RecordType) -> Option<Found<'_>> {
        let own = self.apex.num_labels();
        for labels in own + 1..=name.num_labels() {
            let cut = name.trim_to(usize::from(labels));
            let is_about_cut = cut == *name && record_type == RecordType::DS;
            if let Some(servers) = self.set(&cut, RecordType::NS)
                && !is_about_cut
            {
                return Some(Found::Delegated(cut, servers));
            }
        }
        None
    }

    /// Whether `name` or anything below it has records.
    fn exists(&self, name: &Name) -> bool {
        let next = self.names.range(name..).next();
        *name == self.apex || next.is_some_and(|(next, _)| name.zone_of(next))
    }

    /// Puts `record` in, or gives it its TTL. Gives whether anything changed.
    pub(crate) fn put(&mut self, record: &Record, source: Source) -> bool {
        let name = record.name.to_lowercase();
        let set = self.names.entry(name).or_default();
        let set = set.entry(record.record_type()).or_default();
        let is_new = !set.values.iter().any(|entry| entry.data == record.data);
        if is_new {
            let data = record.data.clone();
            set.values.push(Entry { data, source });
            self.updated += usize::from(source == Source::Update);
        }
        // All records of a set have one TTL.
        //= RFC 2181 section 5.2
        let changed = is_new || set.ttl != record.ttl;
        set.ttl = record.ttl;
        changed
    }

    /// Takes out the records of `name` that `goes` says, as far as updates put them in. Gives
    /// whether anything changed.
    pub(crate) fn take(&mut self, name: &Name, goes: impl Fn(RecordType, &RData) -> bool) -> bool {
        let Some(sets) = self.names.get_mut(name) else {
            return false;
        };
        let mut taken = 0;
        for (record_type, set) in &mut *sets {
            let before = set.values.len();
            set.values
                .retain(|entry| entry.source == Source::File || !goes(*record_type, &entry.data));
            taken += before - set.values.len();
        }
        sets.retain(|_, set| !set.values.is_empty());
        if sets.is_empty() {
            self.names.remove(name);
        }
        self.updated -= taken;
        taken > 0
    }

    /// All records of `name`.
    pub(crate) fn all_of(&self, name: &Name) -> impl Iterator<Item = (RecordType, &Entry)> {
        let sets = self.names.get(name).into_iter().flatten();
        sets.flat_map(|(of, set)| set.values.iter().map(|entry| (*of, entry)))
    }

    /// How many records updates have put in at `part` and below it.
    pub(crate) fn updated_in(&self, part: &Name) -> usize {
        let below = self.names.range(part..);
        let below = below.take_while(|(name, _)| part.zone_of(name));
        let sets = below.flat_map(|(_, sets)| sets.values());
        let entries = sets.flat_map(|set| &set.values);
        let updated = entries.filter(|entry| entry.source == Source::Update);
        updated.count()
    }

    /// Whether there is room for no more updates.
    pub(crate) const fn is_full(&self) -> bool {
        self.updated >= UPDATED_MAX
    }

    /// Every record but the SOA, the zone's own first.
    pub(crate) fn all(&self) -> impl Iterator<Item = Record> + '_ {
        self.entries().map(|(record, _)| record)
    }

    /// The records that updates put in: a line each, as they go over the wire, because not every
    /// record can be told as text and read again; what is for people comes after a semicolon.
    pub(crate) fn updated_text(&self) -> String {
        let updated = self.entries();
        let updated = updated.filter(|(_, source)| *source == Source::Update);
        let line = |record: &Record| {
            let bytes = record.to_bytes().ok()?;
            let (name, of) = (&record.name, record.record_type());
            Some(format!("{} ; {name} {of}\n", STANDARD.encode(bytes)))
        };
        updated.filter_map(|(record, _)| line(&record)).collect()
    }

    /// Puts in what [`Records::updated_text`] gave, and comes after the serial that was written
    /// down with it.
    pub(crate) fn restore(&mut self, kept: Vec<KeptLine>) {
        for line in kept {
            match line {
                KeptLine::Serial(serial) => self.come_after(serial),
                KeptLine::Record(record) => {
                    // The zone may have got another name meanwhile.
                    if self.apex.zone_of(&record.name) {
                        self.put(&record, Source::Update);
                    }
                }
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = (Record, Source)> + '_ {
        self.names.iter().flat_map(|(name, sets)| {
            let sets = sets.iter();
            let sets = sets.filter(|(record_type, _)| **record_type != RecordType::SOA);
            sets.flat_map(move |(_, set)| {
                set.values.iter().map(move |entry| {
                    let data = entry.data.clone();
                    (
                        Record::from_rdata(name.clone(), set.ttl, data),
                        entry.source,
                    )
                })
            })
        })
    }
}

fn of_sets(sets: &BTreeMap<RecordType, Set>, record_type: RecordType) -> Found<'_> {
    // Whoever asks for anything gets one thing, not everything.
    //= RFC 8482 section 4.1
    if record_type == RecordType::ANY {
        let first = sets.iter().next();
        return first.map_or(Found::NoData, |(of, set)| Found::Set(*of, set));
    }
    match (sets.get(&record_type), sets.get(&RecordType::CNAME)) {
        (Some(set), _) => Found::Set(record_type, set),
        (None, Some(other)) => Found::OtherName(other),
        (None, None) => Found::NoData,
    }
}
