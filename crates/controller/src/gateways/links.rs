//! Links as clients see them.

use crate::slices::{Capacity, DirectionState};
use crate::sql::{RowExt, Sql, values};
use slicewise_api::{
    DelayClassUse, Left, LinkAnnouncement, LinkDirection, LinkDirectionRecord, LinkRecord, Promised,
};
use slicewise_model::{Admission, ClassReserved, GuaranteeRequest};
use slicewise_units::{BitRate, ByteCount, Duration};
use sqlx::AnyConnection;

/// Every link, by name.
pub(crate) async fn links(connection: &mut AnyConnection) -> Result<Vec<LinkRecord>, sqlx::Error> {
    let mut found = Vec::new();
    let select = "SELECT name FROM links ORDER BY name";
    for row in connection.rows(select, []).await? {
        found.extend(link(&mut *connection, &row.text("name")?).await?);
    }
    Ok(found)
}

/// One link.
pub(crate) async fn link(
    connection: &mut AnyConnection,
    name: &str,
) -> Result<Option<LinkRecord>, sqlx::Error> {
    let select = "SELECT announcement, disputed FROM links WHERE name = $1";
    let row = connection.row(select, values![name]).await?;
    let Some(row) = row else { return Ok(None) };
    let announcement: LinkAnnouncement = row.json("announcement")?;
    let disputed = row.integer("disputed")? != 0;
    let names = std::iter::once(name.to_owned()).collect();
    let capacity = Capacity::load(connection, &names).await?;
    let record = capacity.link(name).map(|state| LinkRecord {
        name: name.to_owned(),
        gateway: state.gateway.clone(),
        forward: direction(&announcement.forward, &state.directions.forward),
        backward: direction(&announcement.backward, &state.directions.backward),
        disputed,
    });
    Ok(record)
}

fn direction(announced: &LinkDirection, state: &DirectionState) -> LinkDirectionRecord {
    let admission = state.admission();
    // The least that can be guaranteed: whatever is asked for needs as much at least.
    let smallest = GuaranteeRequest {
        rate: BitRate::new(1),
        burst: ByteCount::new(announced.largest_frame_bytes),
        delay: None,
        smallest_frame: ByteCount::new(announced.largest_frame_bytes),
    };
    let classes = admission.classes_in_use().map(|class| DelayClassUse {
        delay_ns: class.reserved.delay.nanos(),
        slices: class.reserved.count,
        rate_bps: class.reserved.rate.bits_per_second(),
        burst_bytes: class.reserved.burst.bytes(),
        link_rate_bps: class.reserved.link_rate.bits_per_second(),
        slack_bytes: class.slack.bytes(),
    });
    let promises_delays = !admission.params().delays.is_none();
    let delay_classes: Vec<DelayClassUse> = classes.filter(|_| promises_delays).collect();
    let slices = state.of_slices();
    let promised: Vec<_> = slices
        .classes_in_use()
        .map(|class| class.reserved)
        .collect();
    let sum = |of: fn(&ClassReserved) -> u64| promised.iter().map(of).sum();
    let left = |admission: &Admission| admission.rate_left().bits_per_second();
    LinkDirectionRecord {
        admission: announced.admission,
        rate_bps: announced.rate_bps,
        counts: announced.counts,
        slices_count: announced.slices_count,
        largest_frame_bytes: announced.largest_frame_bytes,
        buffer_bytes: announced.buffer_bytes,
        shortest_delay_ns: announced.shortest_delay_ns,
        longest_delay_ns: announced.longest_delay_ns,
        reserved_bps: left(&slices).saturating_sub(left(admission)),
        promised: Promised {
            slices: sum(|class| class.count),
            rate_bps: sum(|class| class.rate.bits_per_second()),
            burst_bytes: sum(|class| class.burst.bytes()),
            link_rate_bps: sum(|class| class.link_rate.bits_per_second()),
        },
        left: Left {
            rate_bps: left(admission),
            buffer_bytes: admission.buffer_left().map(ByteCount::bytes),
            smallest_delay_ns: admission.smallest_delay(&smallest).map(Duration::nanos),
        },
        delay_classes,
    }
}
