//! The capacity of links: sums for each direction and delay, and the admission test on them.

use super::delay_choice::{HopDelays, delay_choices, is_promised, requests};
use super::stored::{Hop, wrong_sums};
use crate::sql::{RowExt, Sql, ToValue, values};
use slicewise_api::{
    Bounds, DelayChoices, Invalid, LinkAnnouncement, LinkDirection, OfferAnswer, RefusedOn, Slice,
    Terms,
};
use slicewise_model::{
    Admission, ClassReserved, DelayRange, GuaranteeParams, GuaranteeRequest, SetMember,
};
use slicewise_units::{BitRate, BothWays, ByteCount, Duration, Way};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::{BTreeMap, BTreeSet};

/// The links that a transaction is about.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    links: BTreeMap<String, LinkState>,
    /// Guarantees of slices that were given back.
    released: BTreeMap<String, Released>,
}

/// Guarantees and delays of a slice.
#[derive(Debug, Default)]
struct Released {
    requests: BothWays<Option<GuaranteeRequest>>,
    /// Its delays on each link.
    delays: BTreeMap<String, HopDelays>,
}

impl Released {
    /// The delay that it had on a link and states neither now nor before: it keeps that while it fits.
    fn kept(&self, link: &str, way: Way) -> Option<Duration> {
        let unstated = self.requests[way].is_some_and(|had| had.delay.is_none());
        self.delays.get(link)?[way].filter(|_| unstated)
    }
}

/// Delays of a slice on each link of its path.
pub(crate) type Delays = Vec<HopDelays>;

/// A link, and what is promised of it.
#[derive(Debug, Clone)]
pub(crate) struct LinkState {
    pub(crate) gateway: String,
    /// Names that no slice can have.
    classes: Vec<String>,
    /// Its gateway announces it otherwise, and was refused: nothing more is promised of it.
    is_disputed: bool,
    pub(crate) directions: BothWays<DirectionState>,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub(crate) struct DirectionState {
    admission: Admission,
    /// Guarantees of the gateway's own classes: counted in `admission`, and not in the sums that are stored.
    own: Vec<GuaranteeParams>,
    /// Delays of which the sums changed.
    changed: BTreeSet<Duration>,
}

impl DirectionState {
    /// Nothing is promised yet.
    pub(crate) fn new(direction: &LinkDirection) -> Result<Self, sqlx::Error> {
        // It was validated when it was announced.
        let admission = direction.with_reserved();
        let (admission, own) =
            admission.map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))?;
        Ok(Self {
            admission,
            own,
            changed: BTreeSet::new(),
        })
    }

    pub(crate) const fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Count a guarantee that was admitted when the link was announced otherwise, with this delay or the latest that there is.
    pub(crate) fn try_restore(
        &mut self,
        request: &GuaranteeRequest,
        delay: Duration,
    ) -> Result<Duration, slicewise_model::Refusal> {
        let delay = self.admission.try_restore(&request.with_delay(delay))?;
        self.changed.insert(delay);
        Ok(delay)
    }

    /// Count a guarantee that was admitted before, with this delay.
    pub(crate) fn restore(&mut self, request: &GuaranteeRequest, delay: Duration) {
        self.admission.restore(&request.with_delay(delay));
        self.changed.insert(delay);
    }

    /// `None` if the sums are less than what was promised: they are wrong, and nothing may be promised by them.
    #[must_use]
    fn subtract(&mut self, request: &GuaranteeRequest, delay: Duration) -> Option<()> {
        self.changed.insert(delay);
        let guarantee = request.with_delay(delay);
        self.of_slices().try_release(&guarantee)?;
        self.admission.try_release(&guarantee)
    }

    /// Returns the guarantees of slices, without the gateway's own classes.
    pub(crate) fn of_slices(&self) -> Admission {
        let mut slices = self.admission.clone();
        for guarantee in &self.own {
            let released = slices.try_release(guarantee);
            debug_assert!(released.is_some(), "it is counted");
        }
        slices
    }

    /// Every delay counts as changed.
    pub(crate) fn save_all(&mut self) {
        let slices = self.of_slices();
        let classes = slices.classes_in_use();
        self.changed = classes.map(|class| class.reserved.delay).collect();
    }

    async fn load_sums(
        &mut self,
        connection: &mut AnyConnection,
        link: &str,
        way: Way,
    ) -> Result<(), sqlx::Error> {
        let select = "SELECT * FROM class_sums WHERE link = $1 AND direction = $2";
        let rows = connection.rows(select, values![link, stored(way)]).await?;
        let reserved = |row: &AnyRow| {
            Ok(ClassReserved {
                delay: Duration::from_nanos(row.natural("delay_ns")?),
                count: row.natural("slices")?,
                rate: BitRate::new(row.natural("rate_bps")?),
                burst: ByteCount::new(row.natural("burst_bytes")?),
                link_rate: BitRate::new(row.natural("link_rate_bps")?),
                link_burst: ByteCount::new(row.natural("link_burst_bytes")?),
            })
        };
        let reserved: Vec<_> = rows
            .iter()
            .map(reserved)
            .collect::<Result<_, sqlx::Error>>()?;
        self.admission = Admission::resume(self.admission.params().clone(), reserved);
        for guarantee in &self.own {
            self.admission.restore(guarantee);
        }
        Ok(())
    }
}

impl Capacity {
    /// The links of these names; those that do not exist are left out.
    pub(crate) async fn load(
        connection: &mut AnyConnection,
        names: &BTreeSet<String>,
    ) -> Result<Self, sqlx::Error> {
        let mut capacity = Self::default();
        for name in names {
            let select = "SELECT gateway, announcement, disputed FROM links WHERE name = $1";
            let Some(row) = connection.row(select, values![name]).await? else {
                continue;
            };
            let announcement: LinkAnnouncement = row.json("announcement")?;
            let gateway = row.text("gateway")?;
            capacity.insert(&announcement, &gateway)?;
            if let Some(link) = capacity.links.get_mut(name) {
                link.is_disputed = row.integer("disputed")? != 0;
                for (way, direction) in link.directions.iter_mut() {
                    direction.load_sums(&mut *connection, name, way).await?;
                }
            }
        }
        Ok(capacity)
    }

    /// A link of which nothing is promised yet.
    pub(crate) fn insert(
        &mut self,
        announcement: &LinkAnnouncement,
        gateway: &str,
    ) -> Result<(), sqlx::Error> {
        let directions = announcement.ways().try_map(DirectionState::new)?;
        let gateway = gateway.to_owned();
        let link = LinkState {
            gateway,
            classes: announcement.classes.clone(),
            is_disputed: false,
            directions,
        };
        self.links.insert(announcement.name.clone(), link);
        Ok(())
    }

    /// As [`delay_choices`], of a slice whose links are all here.
    pub(crate) fn delay_choices(&self, slice: &Slice, delays: &[HopDelays]) -> DelayChoices {
        let links = slice.path.iter().filter_map(|name| self.links.get(name));
        let range = |state: &DirectionState| state.admission.params().delays;
        let ranges: Vec<BothWays<DelayRange>> = links
            .map(|link| link.directions.as_ref().map(range))
            .collect();
        delay_choices(slice, delays, &ranges)
    }

    pub(crate) fn link(&self, name: &str) -> Option<&LinkState> {
        self.links.get(name)
    }

    pub(crate) fn link_mut(&mut self, name: &str) -> Option<&mut LinkState> {
        self.links.get_mut(name)
    }

    /// Tests the terms that depend on a link and take none of its capacity, as far as they are others than `before`.
    pub(crate) fn check_terms(&self, slice: &Slice, before: Option<&Slice>) -> Result<(), Invalid> {
        let burst = |terms: &Terms| terms.maximum.map(|maximum| maximum.burst_bytes);
        for (name, link) in slice
            .path
            .iter()
            .filter_map(|name| self.links.get_key_value(name))
        {
            for (way, state) in link.directions.iter() {
                let (Some(terms), params) = (slice.terms(way), state.admission.params()) else {
                    continue;
                };
                let had = before.and_then(|before| before.terms(way));
                if params.delays.is_none() {
                    check_metered(terms, name)
                        .map_err(|invalid| invalid.within(&format!("/{way}")))?;
                }
                let frame = params.largest_frame.bytes();
                if let Some(bytes) = burst(terms)
                    && had.and_then(burst) != Some(bytes)
                    && bytes < frame
                {
                    let problem = format!(
                        "{bytes} B is less than the largest frame of link `{name}`: expected at least {frame} B"
                    );
                    let at = format!("/{way}/maximum/burst_bytes");
                    return Err(Invalid::new(at, problem));
                }
                let known = had.and_then(|had| had.flows.elephants.as_ref());
                let elephants = terms.flows.elephants.as_ref();
                let elephants = elephants.filter(|elephants| known != Some(*elephants));
                let followed = elephants.map(|elephants| elephants.flows_on(params.link.rate));
                followed
                    .transpose()
                    .map_err(|invalid| invalid.within(&format!("/{way}")))?;
            }
        }
        Ok(())
    }

    /// The gateway on the path of `slice` that has a class of its name.
    pub(crate) fn with_class_of(&self, slice: &Slice) -> Option<&str> {
        let links = slice.path.iter().filter_map(|name| self.links.get(name));
        let mut with = links.filter(|link| link.classes.contains(&slice.name));
        with.next().map(|link| link.gateway.as_str())
    }

    /// Give back what `slice` has on its hops.
    ///
    /// # Errors
    /// If the sums of a link are less than that.
    pub(crate) fn release(&mut self, slice: &Slice, hops: &[Hop]) -> Result<(), sqlx::Error> {
        let delays = hops.iter().map(|hop| (hop.link.clone(), hop.delays));
        let released = Released {
            requests: requests(slice),
            delays: delays.collect(),
        };
        self.released.insert(slice.name.clone(), released);
        for hop in hops {
            if let Some(link) = self.links.get_mut(&hop.link) {
                let requests = requests(slice);
                for (way, direction) in link.directions.iter_mut() {
                    if let (Some(delay), Some(request)) = (hop.delays[way], &requests[way]) {
                        let left = direction.subtract(request, delay);
                        left.ok_or_else(|| wrong_sums("link", &hop.link, &slice.name))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Admit the slices on every link of their paths in both directions, or nothing. Returns the delays of each.
    ///
    /// # Errors
    /// The first slice that does not fit, and what would be accepted.
    pub(crate) fn try_admit(
        &mut self,
        slices: &[&Slice],
    ) -> Result<Vec<Delays>, (usize, Box<OfferAnswer>)> {
        for (index, slice) in slices.iter().enumerate() {
            self.undisputed(slice).map_err(|refused| (index, refused))?;
        }
        if let Some(delays) = self.admit_set(slices) {
            return Ok(delays);
        }
        // Which one does not fit beside those before it.
        let one_by_one = slices.iter().enumerate();
        let delays = one_by_one.map(|(index, slice)| {
            self.admit_set(&[slice])
                .and_then(|mut delays| delays.pop())
                .ok_or_else(|| (index, self.refused(slice)))
        });
        delays.collect()
    }

    /// Admit all of them, or nothing: the delays that they do not state are chosen together.
    fn admit_set(&mut self, slices: &[&Slice]) -> Option<Vec<Delays>> {
        let mut delays: Vec<Delays> = slices
            .iter()
            .map(|slice| vec![HopDelays::default(); slice.path.len()])
            .collect();
        let requests: Vec<_> = slices.iter().map(|slice| requests(slice)).collect();
        let mut links = self.links.clone();
        for (name, link) in &mut links {
            for (way, state) in link.directions.iter_mut() {
                let passing = slices.iter().enumerate().filter_map(|(index, slice)| {
                    let hop = slice.path.iter().position(|link| link == name)?;
                    let kept = self.released.get(&slice.name);
                    let member = SetMember {
                        kept: kept.and_then(|had| had.kept(name, way)),
                        ..SetMember::from(requests[index][way]?)
                    };
                    Some(((index, hop), member))
                });
                let (places, set): (Vec<_>, Vec<_>) = passing.unzip();
                for ((index, hop), given) in
                    places.into_iter().zip(state.admission.try_admit_set(&set))
                {
                    let delay = given.ok()?.delay;
                    state.changed.insert(delay);
                    delays[index][hop][way] = Some(delay);
                }
            }
        }
        self.links = links;
        Some(delays)
    }

    /// Nothing more is promised of a disputed link.
    fn undisputed(&self, slice: &Slice) -> Result<(), Box<OfferAnswer>> {
        let had = self.released.get(&slice.name);
        let had = had.map(|had| had.requests).unwrap_or_default();
        for (way, request) in requests(slice).iter() {
            let Some(request) = request else { continue };
            if had[way].is_some_and(|had| is_within(request, &had)) {
                continue;
            }
            let links = slice
                .path
                .iter()
                .filter_map(|name| self.links.get_key_value(name));
            if let Some((name, link)) = { links }.find(|(_, link)| link.is_disputed) {
                return Err(Box::new(disputed(on(slice, name, way), &link.gateway)));
            }
        }
        Ok(())
    }

    /// Why a slice does not fit, and what would.
    fn refused(&self, slice: &Slice) -> Box<OfferAnswer> {
        for (way, request) in requests(slice).iter() {
            let Some(request) = request else { continue };
            for name in &slice.path {
                let Some(link) = self.links.get(name) else {
                    continue;
                };
                let mut admission = link.directions[way].admission().clone();
                if let Err(refusal) = admission.try_admit(request) {
                    let mut offer = self.alternatives(slice, way, request);
                    let on = on(slice, name, way);
                    let refusal = on_whole_path(refusal, &offer, slice, request);
                    let reason = format!("link `{name}`, {way}: {refusal}");
                    offer.reason = Some(reason);
                    offer.refused_on = Some(on);
                    return Box::new(offer);
                }
            }
        }
        Box::default()
    }

    /// The numbers that would be accepted on every link of the path, each with the others unchanged.
    pub(crate) fn alternatives(
        &self,
        slice: &Slice,
        way: Way,
        request: &GuaranteeRequest,
    ) -> OfferAnswer {
        let hops = u64::try_from(slice.path.len().max(1)).unwrap_or(1);
        let (mut rate, mut burst, mut delay) = (Some(u64::MAX), Some(u64::MAX), Some(0));
        for name in &slice.path {
            let Some(link) = self.links.get(name) else {
                continue;
            };
            let admission = link.directions[way].admission();
            let most = admission
                .largest_rate(request)
                .map(BitRate::bits_per_second);
            rate = rate.zip(most).map(|(a, b)| a.min(b));
            let most = admission.largest_burst(request).map(ByteCount::bytes);
            burst = burst.zip(most).map(|(a, b)| a.min(b));
            let least = admission.smallest_delay(request).map(Duration::nanos);
            delay = delay.zip(least).map(|(a, b)| a.max(b));
        }
        let burst = burst.map(|bytes| bytes.min(slicewise_api::BURST_MAX_BYTES));
        OfferAnswer {
            largest_rate_bps: rate,
            largest_burst_bytes: burst,
            smallest_delay_ns: delay.map(|delay| delay.saturating_mul(hops)),
            ..OfferAnswer::default()
        }
    }

    /// The sums of slices on all links.
    pub(super) fn sums(&self) -> Sums {
        let directions = self.links.iter().flat_map(|(name, link)| {
            let each = link.directions.iter();
            each.map(move |(way, direction)| (name, way, direction))
        });
        let sums = directions.flat_map(|(name, way, direction)| {
            let slices = direction.of_slices();
            let reserved: Vec<_> = slices
                .classes_in_use()
                .map(|class| class.reserved)
                .collect();
            reserved
                .into_iter()
                .map(move |class| ((name.clone(), way, class.delay.nanos()), sums(&class)))
        });
        sums.collect()
    }

    /// Links that cannot hold what is promised of them, in words.
    pub(super) fn overcommitted(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, link) in &self.links {
            for (way, state) in link.directions.iter() {
                if let Err(problem) = state.admission.test_all() {
                    found.push(format!(
                        "link `{name}`, {way}: more is promised than it can hold: {problem}"
                    ));
                }
            }
        }
        found
    }

    /// Save the sums that changed.
    pub(crate) async fn save(&self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        let insert = "INSERT INTO class_sums (link, direction, delay_ns, slices, rate_bps, burst_bytes, link_rate_bps, link_burst_bytes) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (link, direction, delay_ns) DO UPDATE SET \
                      slices = excluded.slices, rate_bps = excluded.rate_bps, burst_bytes = excluded.burst_bytes, \
                      link_rate_bps = excluded.link_rate_bps, link_burst_bytes = excluded.link_burst_bytes";
        let delete = "DELETE FROM class_sums WHERE link = $1 AND direction = $2 AND delay_ns = $3";
        for (name, link) in &self.links {
            for (way, state) in link.directions.iter() {
                let slices = state.of_slices();
                for &delay in &state.changed {
                    let class = slices.class(delay);
                    let mut values = Vec::from(values![name, stored(way), Some(delay)]);
                    let sums = class.iter().flat_map(sums);
                    values.extend(sums.map(|sum| sum.to_value()));
                    let statement = if class.is_some() { insert } else { delete };
                    connection.change(statement, values).await?;
                }
            }
        }
        Ok(())
    }
}

/// Bounds from end to end of a slice that has these delays on the links of its path: D + δ of each.
///
/// The sum holds although frames are shaped anew at each link, because every link of the path shapes all packets of the slice to
/// the same rate and burst, wherever they join (docs/mechanisms/guaranteed-bound.md, step 9). A link that promises no delay has zero, and then
/// the path has no bound.
pub(crate) fn bounds(delays: &[HopDelays]) -> Bounds {
    let sum = |way| {
        let own = delays
            .iter()
            .map(|own| Some(own[way].filter(is_promised)?.nanos()));
        own.reduce(|sum, delay| Some(sum?.saturating_add(delay?)))?
    };
    BothWays::from_fn(sum).into()
}

/// Tests the terms of a slice on a link whose gateway meters slices.
fn check_metered(terms: &Terms, link: &str) -> Result<(), Invalid> {
    let meters = format!("the gateway of link `{link}` meters slices (P4-TINS)");
    let (at, problem) = if terms.guarantee.is_none() {
        let problem = format!("{meters}: state a guaranteed rate and its burst");
        ("/guarantee", problem)
    } else if terms.weight != Terms::default().weight {
        let problem = format!(
            "{meters}, and what exceeds guarantees is shared by queue: leave the weight out"
        );
        ("/weight", problem)
    } else if !terms.flows.is_default() {
        let problem = format!("{meters}, and does not tell their flows apart: leave `flows` out");
        ("/flows", problem)
    } else {
        return Ok(());
    };
    Err(Invalid::new(at, problem))
}

/// Returns true if a guarantee is no more than another one.
fn is_within(request: &GuaranteeRequest, had: &GuaranteeRequest) -> bool {
    let is_later = match (request.delay, had.delay) {
        (Some(delay), Some(had)) => delay >= had,
        (delay, had) => delay == had,
    };
    let is_smaller = request.rate <= had.rate && request.burst <= had.burst;
    is_smaller && is_later && request.smallest_frame >= had.smallest_frame
}

/// The refusal of more on a link that is announced with less than what is promised.
fn disputed(on: RefusedOn, gateway: &str) -> OfferAnswer {
    let reason = format!(
        "link `{}`: gateway `{gateway}` announces it otherwise than before, and so that what is promised does not fit: nothing more \
         is promised of it until slices are removed or it is announced as before",
        on.link
    );
    OfferAnswer {
        reason: Some(reason),
        refused_on: Some(on),
        ..OfferAnswer::default()
    }
}

/// Sums of a delay class, as the store has them.
fn sums(class: &ClassReserved) -> [u64; 5] {
    [
        class.count,
        class.rate.bits_per_second(),
        class.burst.bytes(),
        class.link_rate.bits_per_second(),
        class.link_burst.bytes(),
    ]
}

/// Number of a way in the store.
fn stored(way: Way) -> i64 {
    i64::from(way == Way::Backward)
}

/// The refusal of one link, with what would be accepted on all.
fn on_whole_path(
    mut refusal: slicewise_model::Refusal,
    offer: &OfferAnswer,
    slice: &Slice,
    request: &GuaranteeRequest,
) -> slicewise_model::Refusal {
    let rate = offer.largest_rate_bps.map(BitRate::new);
    let burst = offer.largest_burst_bytes.map(ByteCount::new);
    refusal.offer.rate = rate.filter(|&rate| rate < request.rate);
    refusal.offer.burst = burst.filter(|&burst| burst < request.burst);
    refusal.offer.delay = offer.smallest_delay_ns.map(Duration::from_nanos);
    if slice.path.len() > 1 {
        refusal.offer.smallest_frame = None;
    }
    refusal
}

fn on(slice: &Slice, link: &str, direction: Way) -> RefusedOn {
    RefusedOn {
        slice: slice.name.clone(),
        link: link.to_owned(),
        direction,
    }
}

#[cfg(test)]
mod tests;

/// Sums by link, direction and delay in nanoseconds: slices, bit/s and bytes as the slices count, and as the link counts.
pub(super) type Sums = BTreeMap<(String, Way, u64), [u64; 5]>;
