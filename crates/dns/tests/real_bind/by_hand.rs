//! An operator who edits the name of a site by hand while rescue servers stand in it.

use std::net::IpAddr;
use std::time::Duration;

use levee_dns::{
    Addresses, Input, Keeper, KeptName, Kind, Output, Record, RemoteZone, Value, Zone,
};
use levee_vocab::Timestamp;

use crate::named::{KEY, Named, Stage};

const NAME: &str = "www.site.test";
const OWN: &str = "192.0.2.1";
/// Whom we put in, and the operator writes again.
const FIRST: &str = "192.0.2.2";
/// Whom the operator writes before we want him.
const SECOND: &str = "192.0.2.3";
const ZONE: &str = "$TTL 30\n@ IN SOA ns admin 1 60 30 3600 5\n@ IN NS ns\nns IN A 127.0.0.1\n\
    www IN A 192.0.2.1\n";

fn addresses(texts: &[&str]) -> Addresses {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Tells the keeper, and does what it says until it is settled.
async fn tell(keeper: &mut Keeper, zone: &RemoteZone, mut next: Option<Output>) {
    let now = Timestamp::ZERO;
    let name = NAME.parse().unwrap();
    while let Some(output) = next {
        let input = match output {
            Output::Read => {
                let read = zone.read(&name, Kind::A).await.unwrap();
                let address = |value: Value| match value {
                    Value::Address(address) => address,
                    Value::Text(text) => panic!("{text}"),
                };
                Input::NameRead(Ok(read.into_iter().map(address).collect()))
            }
            Output::Remember(_) => Input::Remembered(Ok(())),
            Output::Change(change) => {
                Input::Changed(zone.change(change).await.map_err(|error| error.cause))
            }
        };
        next = keeper.handle(now, input);
    }
    assert!(keeper.is_settled());
}

async fn writes_by_hand(zone: &RemoteZone, address: &str) {
    let address: IpAddr = address.parse().unwrap();
    let record = Record {
        name: NAME.parse().unwrap(),
        value: Value::Address(address),
        ttl: Duration::from_secs(300),
    };
    zone.add(record).await.unwrap();
}

#[tokio::test]
async fn what_the_operator_wrote_first_stays_and_what_we_put_in_goes_with_the_rescue() {
    let named = Named::start_as(&Stage {
        name: "site.test",
        zone: Some(ZONE),
        at: None,
        statement: "type primary; update-policy { grant community. zonesub ANY; };",
    });
    let key = KEY.parse().unwrap();
    let zone = RemoteZone::new(named.address(), "site.test".parse().unwrap(), key);
    let kept = KeptName {
        name: NAME.parse().unwrap(),
        own: addresses(&[OWN]),
        ttl: Duration::from_secs(10),
    };
    let (mut keeper, first) = Keeper::new(kept, Addresses::new(), 1);
    tell(&mut keeper, &zone, Some(first)).await;
    let wants = |keeper: &mut Keeper, wanted: &[&str]| {
        keeper.handle(Timestamp::ZERO, Input::Wanted(addresses(wanted)))
    };
    let next = wants(&mut keeper, &[FIRST]);
    tell(&mut keeper, &zone, next).await;
    assert_eq!(named.dig("www.site.test A"), [OWN, FIRST]);

    // In the middle of the rescue, both; of one address DNS has one record.
    writes_by_hand(&zone, FIRST).await;
    writes_by_hand(&zone, SECOND).await;
    let next = wants(&mut keeper, &[FIRST, SECOND]);
    tell(&mut keeper, &zone, next).await;
    assert_eq!(named.dig("www.site.test A"), [OWN, FIRST, SECOND]);

    let next = wants(&mut keeper, &[]);
    tell(&mut keeper, &zone, next).await;
    assert_eq!(named.dig("www.site.test A"), [OWN, SECOND]);
}
