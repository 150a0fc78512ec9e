//! Where the record stands by which an authority sees that a name is ours.
//!
//! It looks at `_acme-challenge.NAME`, and where that is only another name (CNAME), at the name
//! that it leads to: so the zone of a name need not take updates, if some other zone does. Names in
//! zones of ours are asked where the zone is kept; others are looked up as this machine looks up
//! all names.

use hickory_resolver::TokioResolver;
use hickory_resolver::proto::rr::{RData, RecordType};
use levee_dns::{Cause, DomainName, Kind, Zone, ZoneError};

use super::error::AcmeError;
use super::name::CertificateName;
use super::records::KnownZones;

/// Most names that lead to the next, as many as resolvers follow.
const NAMES_MAX: usize = 8;

/// Where the record for `name` is to stand; it is in the zone that is given with it.
///
/// # Errors
/// When no zone holds it, or DNS cannot be asked.
///
/// Cancel safety: may be dropped at any time.
//= RFC 8555 section 8.4: "it is possible to use CNAME records to delegate validation"
pub(super) async fn place_of<'a>(
    name: &CertificateName,
    zones: &'a KnownZones,
) -> Result<(DomainName, &'a dyn Zone), AcmeError> {
    let first = first_place(name)?;
    let mut place = first.clone();
    for _ in 0..=NAMES_MAX {
        let zone = zone_of(&place, zones);
        let target = match zone {
            Some(zone) => target_in(zone, &place).await,
            None => look_up(&place).await,
        };
        match (target?, zone) {
            (Some(target), _) => place = target,
            (None, Some(zone)) => return Ok((place, zone)),
            (None, None) if place == first => return Err(AcmeError::NoZone(name.clone())),
            (None, None) => {
                return Err(AcmeError::RecordElsewhere {
                    name: first,
                    target: place,
                    zones: zones.iter().map(|(zone, _)| zone.to_string()).collect(),
                });
            }
        }
    }
    Err(AcmeError::RecordNowhere(first))
}

/// Where authorities look first.
//= RFC 8555 section 8.4: "The client constructs the validation domain name by prepending the
// label "_acme-challenge" to the domain name being validated, then provisions a TXT record"
pub(super) fn first_place(name: &CertificateName) -> Result<DomainName, AcmeError> {
    let place = DomainName::from(name.host()).below("_acme-challenge");
    place.map_err(|_| AcmeError::NoZone(name.clone()))
}

/// The smallest zone that holds `name`.
pub(super) fn zone_of<'a>(name: &DomainName, zones: &'a KnownZones) -> Option<&'a dyn Zone> {
    let holding = zones.iter().filter(|(zone, _)| zone.contains(name));
    let smallest = holding.max_by_key(|(zone, _)| zone.to_string().len());
    smallest.map(|(_, zone)| &**zone)
}

async fn target_in(zone: &dyn Zone, place: &DomainName) -> Result<Option<DomainName>, AcmeError> {
    match zone.read(place, Kind::Text).await {
        Ok(_) => Ok(None),
        Err(ZoneError {
            cause: Cause::OtherName { target, .. },
            ..
        }) => Ok(Some(target)),
        Err(error) => Err(AcmeError::Record {
            name: place.clone(),
            error,
        }),
    }
}

async fn look_up(place: &DomainName) -> Result<Option<DomainName>, AcmeError> {
    let failed = |why: String| AcmeError::NotLookedUp {
        name: place.clone(),
        why,
    };
    // A new one each time: what it remembers would be older than what the operator has just mended.
    let resolver = TokioResolver::builder_tokio().and_then(|builder| builder.build());
    let resolver = resolver.map_err(|error| failed(error.to_string()))?;
    let answer = match resolver
        .lookup(format!("{place}."), RecordType::CNAME)
        .await
    {
        Ok(answer) => answer,
        Err(error) if error.is_no_records_found() => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    Ok(answer.answers().iter().find_map(|record| {
        let RData::CNAME(target) = &record.data else {
            return None;
        };
        target.0.to_string().parse().ok()
    }))
}
