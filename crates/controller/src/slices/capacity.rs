//! The capacity of links: sums for each direction and delay class, and the admission test on them.

use super::stored::Hop;
use crate::store::{RowExt, number};
use slicewise_api::{
    Bounds, Direction, LinkAnnouncement, LinkDirection, OfferAnswer, RefusedOn, Slice, Terms,
};
use slicewise_model::{Admission, AdmissionParams, ClassReserved, GuaranteeRequest, Problem};
use slicewise_units::{BitRate, ByteCount, Duration, Rounded};
use sqlx::AnyConnection;
use std::collections::{BTreeMap, BTreeSet};

/// The links that a transaction is about.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    links: BTreeMap<String, LinkState>,
}

/// A link, and what is promised of it.
#[derive(Debug, Clone)]
pub(crate) struct LinkState {
    pub(crate) gateway: String,
    /// Forward and backward.
    pub(crate) directions: [DirectionState; 2],
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub(crate) struct DirectionState {
    params: AdmissionParams,
    sums: Vec<Sums>,
    changed: BTreeSet<usize>,
    /// Of the sums, once something is tested.
    admission: Option<Admission>,
}

/// What the slices of one delay class have together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    slices: u64,
    rate_bps: u64,
    burst_bytes: u64,
}

impl DirectionState {
    /// Nothing is promised yet.
    pub(crate) fn new(direction: &LinkDirection) -> Result<Self, sqlx::Error> {
        // It was validated when it was announced.
        let params = direction.admission();
        let params = params.map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))?;
        let sums = vec![Sums::default(); params.delay_classes.delays().len()];
        Ok(Self {
            params,
            sums,
            changed: BTreeSet::new(),
            admission: None,
        })
    }

    pub(crate) fn admission(&mut self) -> &mut Admission {
        let (params, sums) = (&self.params, &self.sums);
        self.admission.get_or_insert_with(|| {
            let classes = params.delay_classes.classes().zip(sums);
            let reserved = classes.map(|((class, _), sums)| ClassReserved {
                class,
                count: sums.slices,
                rate: BitRate::new(sums.rate_bps),
                burst: ByteCount::new(sums.burst_bytes),
            });
            Admission::resume(params.clone(), reserved)
        })
    }

    /// Admit one guarantee, and count it. The position of its delay class.
    pub(crate) fn try_add(
        &mut self,
        request: &GuaranteeRequest,
    ) -> Result<usize, slicewise_model::Refusal> {
        let class = self.admission().try_admit(request)?.params().class.index();
        if let Some(sums) = self.sums.get_mut(class) {
            sums.slices += 1;
            sums.rate_bps += request.rate.bits_per_second();
            sums.burst_bytes += request.burst.bytes();
            self.changed.insert(class);
        }
        Ok(class)
    }

    fn subtract(&mut self, class: usize, terms: &Terms) {
        self.admission = None;
        if let (Some(sums), Some(guarantee)) = (self.sums.get_mut(class), terms.guarantee) {
            sums.slices = sums.slices.saturating_sub(1);
            sums.rate_bps = sums.rate_bps.saturating_sub(guarantee.rate_bps);
            sums.burst_bytes = sums.burst_bytes.saturating_sub(guarantee.burst_bytes);
            self.changed.insert(class);
        }
    }

    /// The bound of a class at this link: its delay, and the width of a bucket.
    fn bound(&self, class: usize) -> u64 {
        let classes = &self.params.delay_classes;
        let delay = classes
            .delays()
            .get(class)
            .copied()
            .unwrap_or_else(|| classes.longest());
        delay.nanos().saturating_add(classes.bucket_width().nanos())
    }

    /// Every class counts as changed.
    pub(crate) fn save_all(&mut self) {
        self.changed = (0..self.sums.len()).collect();
    }

    /// Slices, rate and burst of all classes together.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        self.sums
            .iter()
            .fold((0, 0, 0), |(slices, rate, burst), sums| {
                (
                    slices + sums.slices,
                    rate + sums.rate_bps,
                    burst + sums.burst_bytes,
                )
            })
    }

    async fn load_sums(
        &mut self,
        connection: &mut AnyConnection,
        link: &str,
        direction: usize,
    ) -> Result<(), sqlx::Error> {
        let select = "SELECT class, slices, rate_bps, burst_bytes FROM class_sums \
                      WHERE link = $1 AND direction = $2";
        let direction = i64::try_from(direction).unwrap_or_default();
        let rows = sqlx::query(select).bind(link.to_owned()).bind(direction);
        for row in rows.fetch_all(connection).await? {
            let class = usize::try_from(row.natural("class")?).unwrap_or(usize::MAX);
            if let Some(sums) = self.sums.get_mut(class) {
                *sums = Sums {
                    slices: row.natural("slices")?,
                    rate_bps: row.natural("rate_bps")?,
                    burst_bytes: row.natural("burst_bytes")?,
                };
            }
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
            let select = "SELECT gateway, announcement FROM links WHERE name = $1";
            let row = sqlx::query(select).bind(name.clone());
            let Some(row) = row.fetch_optional(&mut *connection).await? else {
                continue;
            };
            let announcement: LinkAnnouncement = row.json("announcement")?;
            let gateway = row.text("gateway")?;
            capacity.insert(&announcement, &gateway)?;
            if let Some(link) = capacity.links.get_mut(name) {
                for (index, direction) in link.directions.iter_mut().enumerate() {
                    direction.load_sums(&mut *connection, name, index).await?;
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
        let directions = [
            DirectionState::new(&announcement.forward)?,
            DirectionState::new(&announcement.backward)?,
        ];
        let gateway = gateway.to_owned();
        let link = LinkState {
            gateway,
            directions,
        };
        self.links.insert(announcement.name.clone(), link);
        Ok(())
    }

    pub(crate) fn link(&self, name: &str) -> Option<&LinkState> {
        self.links.get(name)
    }

    pub(crate) fn link_mut(&mut self, name: &str) -> Option<&mut LinkState> {
        self.links.get_mut(name)
    }

    /// Give back what `slice` has on its hops.
    pub(crate) fn release(&mut self, slice: &Slice, hops: &[Hop]) {
        for hop in hops {
            if let Some(link) = self.links.get_mut(&hop.link) {
                let terms = [&slice.forward, &slice.backward];
                for (index, direction) in link.directions.iter_mut().enumerate() {
                    if let (Some(class), Some(terms)) = (hop.classes[index], terms[index]) {
                        direction.subtract(class, terms);
                    }
                }
            }
        }
    }

    /// Admit both directions on every link of the path, or nothing. For each link the delay classes.
    ///
    /// # Errors
    /// What would be accepted.
    pub(crate) fn try_admit(
        &mut self,
        slice: &Slice,
    ) -> Result<Vec<[Option<usize>; 2]>, Box<OfferAnswer>> {
        let requests = requests(slice);
        // Nothing is counted before every link was tested: each is on the path once.
        for (index, request) in requests.iter().enumerate() {
            let Some(request) = request else { continue };
            for name in &slice.path {
                let Some(link) = self.links.get_mut(name) else {
                    continue;
                };
                let mut admission = link.directions[index].admission().clone();
                if let Err(refusal) = admission.try_admit(request) {
                    let on = RefusedOn {
                        slice: slice.name.clone(),
                        link: name.clone(),
                        direction: direction(index),
                    };
                    let refused = self.refused(slice, index, request, &refusal.problem, on);
                    return Err(Box::new(refused));
                }
            }
        }
        let mut classes = Vec::with_capacity(slice.path.len());
        for name in &slice.path {
            let mut own = [None, None];
            if let Some(link) = self.links.get_mut(name) {
                for (index, request) in requests.iter().enumerate() {
                    if let Some(request) = request {
                        own[index] = link.directions[index].try_add(request).ok();
                    }
                }
            }
            classes.push(own);
        }
        Ok(classes)
    }

    fn refused(
        &mut self,
        slice: &Slice,
        index: usize,
        request: &GuaranteeRequest,
        problem: &Problem,
        on: RefusedOn,
    ) -> OfferAnswer {
        let mut offer = self.alternatives(slice, index, request);
        let what = match problem {
            // These texts already say what to do.
            Problem::ZeroRate | Problem::BurstBelowFrame { .. } => problem.to_string(),
            _ => format!("{problem}: {}", alternatives_text(&offer, request)),
        };
        let reason = format!("link `{}`, {}: {what}", on.link, on.direction.name());
        offer.reason = Some(reason);
        offer.refused_on = Some(on);
        offer
    }

    /// The numbers that would be accepted on every link of the path, each with the others unchanged.
    pub(crate) fn alternatives(
        &mut self,
        slice: &Slice,
        index: usize,
        request: &GuaranteeRequest,
    ) -> OfferAnswer {
        let hops = u64::try_from(slice.path.len().max(1)).unwrap_or(1);
        let (mut rate, mut burst, mut delay) = (Some(u64::MAX), Some(u64::MAX), Some(0));
        for name in &slice.path {
            let Some(link) = self.links.get_mut(name) else {
                continue;
            };
            let admission = link.directions[index].admission();
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

    /// Save the sums that changed.
    pub(crate) async fn save(&self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        let insert = "INSERT INTO class_sums (link, direction, class, slices, rate_bps, burst_bytes) \
                      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (link, direction, class) DO UPDATE SET \
                      slices = excluded.slices, rate_bps = excluded.rate_bps, burst_bytes = excluded.burst_bytes";
        for (name, link) in &self.links {
            for (direction, state) in (0i64..).zip(&link.directions) {
                for &class in &state.changed {
                    let sums = state.sums.get(class).copied().unwrap_or_default();
                    let insert = sqlx::query(insert)
                        .bind(name.clone())
                        .bind(direction)
                        .bind(i64::try_from(class).unwrap_or_default())
                        .bind(number(sums.slices))
                        .bind(number(sums.rate_bps))
                        .bind(number(sums.burst_bytes));
                    insert.execute(&mut *connection).await?;
                }
            }
        }
        Ok(())
    }

    /// Bounds from end to end of a slice with these delay classes.
    pub(crate) fn bounds(&self, slice: &Slice, classes: &[[Option<usize>; 2]]) -> Bounds {
        let sum = |index: usize| {
            let mut sum = None;
            for (name, own) in slice.path.iter().zip(classes) {
                let (class, link) = (own[index]?, self.links.get(name)?);
                let before: u64 = sum.unwrap_or(0);
                sum = Some(before.saturating_add(bound_of(&link.directions[index], class)));
            }
            sum
        };
        Bounds {
            forward: sum(0),
            backward: sum(1),
        }
    }
}

/// The bound of a delay class at a link, nanoseconds.
pub(crate) fn bound_of(direction: &DirectionState, class: usize) -> u64 {
    direction.bound(class)
}

pub(crate) const fn direction(index: usize) -> Direction {
    match index {
        0 => Direction::Forward,
        _ => Direction::Backward,
    }
}

/// What is requested of each link, forward and backward.
pub(crate) fn requests(slice: &Slice) -> [Option<GuaranteeRequest>; 2] {
    let request = |terms: &Option<Terms>| terms.as_ref()?.request(slice.path.len());
    [request(&slice.forward), request(&slice.backward)]
}

/// For people: rounded so that what is said to be accepted is.
fn alternatives_text(offer: &OfferAnswer, request: &GuaranteeRequest) -> String {
    let smaller = |most: Option<u64>, asked: u64| most.filter(|&most| most < asked);
    let rate = smaller(offer.largest_rate_bps, request.rate.bits_per_second());
    let burst = smaller(offer.largest_burst_bytes, request.burst.bytes());
    let texts = [
        rate.map(|rate| format!("a rate of at most {}", BitRate::new(rate).rounded_down())),
        burst.map(|burst| {
            format!(
                "a burst of at most {}",
                ByteCount::new(burst).rounded_down()
            )
        }),
        offer.smallest_delay_ns.map(|delay| {
            let delay = Duration::from_nanos(delay);
            format!("a delay of at least {}", delay.rounded_up())
        }),
    ];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    match texts.split_last() {
        None => "no smaller rate, smaller burst or longer delay alone would be accepted".to_owned(),
        Some((last, [])) => format!("{last} would be accepted"),
        Some((last, others)) => format!("{}, or {last}, would be accepted", others.join(", ")),
    }
}
