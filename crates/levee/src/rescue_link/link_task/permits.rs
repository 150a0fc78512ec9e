//! Permits and reports on one link: between its session and the office that signs and checks.

use levee_control::Input;
use levee_vocab::LinkId;
use levee_wire::{Output, Permit};
use tokio::time::Instant;

use super::LinkTask;
use crate::trust::Counterpart;

impl LinkTask {
    /// Tells our rescue server for how long it may go on without us, and when to do so again.
    pub(super) fn give_permit(&mut self) -> Vec<Output> {
        let (Some(office), Some(alias)) = (&self.context.settings.integrity, &self.alias) else {
            return Vec::new();
        };
        let Some(permit) = office.permit_for(alias) else {
            self.permit_at = None;
            return Vec::new();
        };
        self.permit_at = Some(Instant::now() + office.renewal());
        self.happens(levee_wire::Input::PermitDecided(permit))
    }

    /// We help the member whose key is at the other end: what we fetch for it is checked with that
    /// key from now on, whether or not it permits anything.
    pub(super) fn believe_caller(&mut self) {
        if let (Counterpart::Key(key), Some(origin)) = (self.counterpart, &self.other)
            && let Some(office) = &self.context.settings.integrity
        {
            office.believe(origin, key);
            self.heard_key = Some(key);
        }
    }

    /// The origin tells us for how long we may go on without it. What is not its word is counted,
    /// and costs it nothing but the permit.
    pub(super) async fn take_permit(&mut self, permit: &Permit) {
        let (LinkId::Inbound(_), Some(origin), Some(alias)) =
            (self.peer.link, &self.other, &self.alias)
        else {
            return;
        };
        let Some(office) = &self.context.settings.integrity else {
            return;
        };
        match office.take_permit((origin, alias), permit, &mut self.heard_key) {
            Ok(length) => {
                let link = self.peer.link;
                // The Brain is gone only when the server stops: then nobody wants to know.
                let permitted = Input::PermitReceived { link, length };
                let _ = self.context.events.send(permitted).await;
            }
            Err(why) => {
                self.context.refusals.note(why.cause());
                let what = format!("permit of {origin}");
                self.context.trust.refuse(&what, why.into());
            }
        }
    }

    /// A rescue server of ours says what another one delivered.
    pub(super) fn take_report(&self, report: levee_wire::Report) {
        if let (LinkId::Outbound(_), Some(office)) =
            (self.peer.link, &self.context.settings.integrity)
        {
            office.report(self.peer.link, report);
        }
    }
}
