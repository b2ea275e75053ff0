//! Validates a hierarchical scheduler, and converts it into the library's units.

use super::fraction::share_of_port;
use super::{
    BEST_EFFORT, BEST_EFFORT_QUEUES, HqosCredits, HqosError, HqosParams, HqosPipeParams,
    HqosPipeProfile, HqosRates, HqosRedCurve, HqosSection, HqosSpec, HqosSubport,
    HqosSubportParams, MAX_PIPE_PROFILES, MAX_PIPES, MAX_SUBPORT_PROFILES, MAX_SUBPORTS,
};
use slicewise_units::BitRate;

/// Longest period of traffic classes, and largest token bucket: what the library computes from them fits in 64 bits.
const MAX_TC_PERIOD_MS: u64 = 60_000;
const MAX_TB_SIZE: u64 = 1 << 40;
/// Largest rate of a port: 3.2 Tbit/s.
const MAX_PORT_RATE: u64 = 400_000_000_000;
/// Largest frame, and most bytes beside a frame.
const MAX_FRAME: u32 = 65_535;
/// Ranges of early detection (`rte_red.h`).
const MAX_RED_THRESHOLD: u16 = 1023;
const MAX_RED_WEIGHT: u16 = 12;
const MAX_RED_INVERSE: u16 = 255;

impl HqosSpec {
    /// Validate for a port of rate `port`, and convert into bytes of its time. What the library refuses is refused,
    /// and what it takes and cannot run.
    ///
    /// # Errors
    /// The first key with a problem.
    pub fn resolve(&self, port: BitRate) -> Result<HqosParams, HqosError> {
        let rate = port.bits_per_second() / 8;
        self.check_port(rate)?;
        for (number, rates) in self.subport_profiles.iter().enumerate() {
            check_rates(HqosSection::SubportProfile(number), rates, rate)?;
            check_subport_profile(number, rates)?;
        }
        for (number, profile) in self.pipe_profiles.iter().enumerate() {
            check_pipe_profile(number, profile, rate)?;
        }
        for (number, subport) in self.subports.iter().enumerate() {
            self.check_subport(number, subport)?;
        }
        self.check_red()?;
        let subports = self.subports.iter().enumerate();
        let subports = subports.map(|(number, subport)| {
            let rates = self.subport_profiles.get(subport.profile as usize);
            let missing = || no_profile(HqosSection::Subport(number), "subport", subport.profile);
            let mut credits = credits(
                HqosSection::SubportProfile(subport.profile as usize),
                rates.ok_or_else(missing)?,
                rate,
            )?;
            for (credits, size) in credits
                .tc_credits_per_period
                .iter_mut()
                .zip(subport.queue_sizes)
            {
                *credits *= u64::from(size > 0);
            }
            Ok(HqosSubportParams {
                pipes: subport.pipes,
                queue_sizes: subport.queue_sizes,
                credits,
                assigned: subport.assigned.clone(),
            })
        });
        let profiles = self.pipe_profiles.iter().enumerate();
        let profiles = profiles.map(|(number, profile)| {
            Ok(HqosPipeParams {
                credits: credits(HqosSection::PipeProfile(number), &profile.rates, rate)?,
                best_effort_rate: profile.rates.tc_rates[BEST_EFFORT],
                oversubscription_weight: profile.oversubscription_weight,
                wrr_costs: wrr_costs(profile.wrr_weights),
            })
        });
        Ok(HqosParams {
            rate,
            mtu: self.mtu + self.frame_overhead,
            frame_overhead: self.frame_overhead,
            subports: subports.collect::<Result<_, _>>()?,
            pipe_profiles: profiles.collect::<Result<_, _>>()?,
            red: self.red.clone(),
        })
    }

    fn check_port(&self, rate: u64) -> Result<(), HqosError> {
        let fail = |key: &str, problem: String| Err(error(HqosSection::Port, key, problem));
        if !(1..=MAX_PORT_RATE).contains(&rate) {
            return fail(
                "rate",
                format!("the port has {rate} byte/s: 1 to {MAX_PORT_RATE} are possible"),
            );
        }
        if !(1..=MAX_FRAME).contains(&self.mtu) {
            let mtu = self.mtu;
            return fail("mtu", format!("is {mtu} B: must be 1 to {MAX_FRAME}"));
        }
        if self.frame_overhead > MAX_FRAME {
            let bytes = self.frame_overhead;
            return fail(
                "frame overhead",
                format!("is {bytes} B: at most {MAX_FRAME}"),
            );
        }
        let subports = self.subports.len();
        if !subports.is_power_of_two() || subports > MAX_SUBPORTS {
            return fail(
                "number of subports per port",
                format!("is {subports}: must be a power of two, at most {MAX_SUBPORTS}"),
            );
        }
        for (key, profiles, most) in [
            (
                "subport profile",
                self.subport_profiles.len(),
                MAX_SUBPORT_PROFILES,
            ),
            ("pipe profile", self.pipe_profiles.len(), MAX_PIPE_PROFILES),
        ] {
            if !(1..=most).contains(&profiles) {
                return fail(
                    key,
                    format!("there are {profiles} of them: 1 to {most} are possible"),
                );
            }
        }
        Ok(())
    }

    fn check_subport(&self, number: usize, subport: &HqosSubport) -> Result<(), HqosError> {
        let section = HqosSection::Subport(number);
        if !subport.pipes.is_power_of_two() || subport.pipes > MAX_PIPES {
            let problem = format!(
                "is {}: must be a power of two, at most {MAX_PIPES}",
                subport.pipes
            );
            return Err(error(section, "number of pipes per subport", problem));
        }
        for (class, size) in subport.queue_sizes.into_iter().enumerate() {
            let problem = if size != 0 && !size.is_power_of_two() {
                format!(
                    "has {size} packets for traffic class {class}: must be a power of two, or 0"
                )
            } else if size == 0 && class == BEST_EFFORT {
                "has no packets for traffic class 12: best effort needs queues".to_owned()
            } else {
                continue;
            };
            return Err(at(class, error(section, "queue sizes", problem)));
        }
        self.check_assigned(section, subport)?;
        if let Some(rates) = self.subport_profiles.get(subport.profile as usize) {
            let of = HqosSection::SubportProfile(subport.profile as usize);
            check_credits(of, rates, subport)?;
        }
        for (number, profile) in self.pipe_profiles.iter().enumerate() {
            check_credits(HqosSection::PipeProfile(number), &profile.rates, subport)?;
        }
        for (profile, params) in self.pipe_profiles.iter().enumerate() {
            for (class, (size, rate)) in subport
                .queue_sizes
                .into_iter()
                .zip(params.rates.tc_rates)
                .enumerate()
            {
                let problem = match (size, rate) {
                    (0, 1..) => {
                        format!("is {rate}, but subport {number} has no queue of the class")
                    }
                    (1.., 0) => format!(
                        "is 0, but subport {number} has a queue of the class: set its queue size to 0, too"
                    ),
                    _ => continue,
                };
                let section = HqosSection::PipeProfile(profile);
                return Err(error(section, &tc_rate(class), problem));
            }
        }
        Ok(())
    }

    fn check_assigned(&self, section: HqosSection, subport: &HqosSubport) -> Result<(), HqosError> {
        for (position, range) in subport.assigned.iter().enumerate() {
            let (first, last) = (range.first, range.last);
            let key = pipes(first, last);
            if first > last || last >= subport.pipes {
                let problem = format!(
                    "must be a range of pipes from 0 to {}",
                    subport.pipes.saturating_sub(1)
                );
                return Err(error(section, &key, problem));
            }
            if self.pipe_profiles.len() <= range.profile as usize {
                return Err(no_profile(section, &key, range.profile));
            }
            let before = subport.assigned.iter().take(position);
            let mut overlapping = before.filter(|other| other.first <= last && first <= other.last);
            if let Some(other) = overlapping.next() {
                let problem = format!(
                    "overlaps `{}`: a pipe has one profile",
                    pipes(other.first, other.last)
                );
                return Err(error(section, &key, problem));
            }
        }
        Ok(())
    }

    fn check_red(&self) -> Result<(), HqosError> {
        let classes = self.red.iter().flat_map(|red| red.iter().enumerate());
        for (class, colours) in classes {
            for (colour, curve) in colours.iter().enumerate() {
                let curve = curve.as_ref();
                curve.map_or(Ok(()), |curve| check_curve(class, colour, curve))?;
            }
        }
        Ok(())
    }
}

fn error(section: HqosSection, key: &str, problem: String) -> HqosError {
    HqosError {
        section,
        key: key.to_owned(),
        position: None,
        problem,
    }
}

/// The error is of one value among several.
fn at(position: usize, error: HqosError) -> HqosError {
    HqosError {
        position: Some(position),
        ..error
    }
}

fn no_profile(section: HqosSection, key: &str, profile: u32) -> HqosError {
    error(section, key, format!("profile {profile} is not defined"))
}

fn pipes(first: u32, last: u32) -> String {
    if first == last {
        format!("pipe {first}")
    } else {
        format!("pipe {first}-{last}")
    }
}

fn tc_rate(class: usize) -> String {
    format!("tc {class} rate")
}

fn check_rates(section: HqosSection, rates: &HqosRates, port: u64) -> Result<(), HqosError> {
    let tb_rate = rates.tb_rate;
    if tb_rate == 0 || tb_rate > port {
        let problem = format!(
            "is {tb_rate} byte/s: must be 1 to {port}, the rate of the port ({}, which the link or its device has, and \
             not the profile)",
            BitRate::new(port.saturating_mul(8))
        );
        return Err(error(section, "tb rate", problem));
    }
    for (class, rate) in rates.tc_rates.into_iter().enumerate() {
        if rate > tb_rate {
            let problem = format!("is {rate} byte/s, more than the token bucket's {tb_rate}");
            return Err(error(section, &tc_rate(class), problem));
        }
    }
    if !(1..=MAX_TB_SIZE).contains(&rates.tb_size) {
        let problem = format!("is {} B: must be 1 to {MAX_TB_SIZE}", rates.tb_size);
        return Err(error(section, "tb size", problem));
    }
    if !(1..=MAX_TC_PERIOD_MS).contains(&rates.tc_period) {
        let problem = format!("is {} ms: must be 1 to {MAX_TC_PERIOD_MS}", rates.tc_period);
        return Err(error(section, "tc period", problem));
    }
    Ok(())
}

/// A class with queues that gets no byte in a period would never send.
fn check_credits(
    section: HqosSection,
    rates: &HqosRates,
    subport: &HqosSubport,
) -> Result<(), HqosError> {
    let period = rates.tc_period;
    for (class, (rate, size)) in (rates.tc_rates.into_iter().zip(subport.queue_sizes)).enumerate() {
        if size > 0 && rate > 0 && in_period(rate, period) == 0 {
            let problem = format!(
                "is {rate} byte/s, less than 1 byte in the `tc period` of {period} ms: no frame of the class would \
                 ever leave"
            );
            return Err(error(section, &tc_rate(class), problem));
        }
    }
    Ok(())
}

/// Bytes in a period of so many milliseconds.
const fn in_period(rate: u64, period_ms: u64) -> u64 {
    rate * period_ms / 1000
}

fn check_subport_profile(number: usize, rates: &HqosRates) -> Result<(), HqosError> {
    match rates.tc_rates.iter().position(|rate| *rate == 0) {
        Some(class) => Err(error(
            HqosSection::SubportProfile(number),
            &tc_rate(class),
            "is 0: every traffic class of a subport needs a rate".to_owned(),
        )),
        None => Ok(()),
    }
}

fn check_pipe_profile(
    number: usize,
    profile: &HqosPipeProfile,
    port: u64,
) -> Result<(), HqosError> {
    let section = HqosSection::PipeProfile(number);
    check_rates(section, &profile.rates, port)?;
    if profile.oversubscription_weight == 0 {
        let problem = "is 0: must be 1 to 255".to_owned();
        return Err(error(section, "tc 12 oversubscription weight", problem));
    }
    if let Some(queue) = profile.wrr_weights.iter().position(|weight| *weight == 0) {
        let problem = "have a 0: each weight must be 1 to 255".to_owned();
        return Err(at(queue, error(section, "tc 12 wrr weights", problem)));
    }
    Ok(())
}

fn check_curve(class: usize, colour: usize, curve: &HqosRedCurve) -> Result<(), HqosError> {
    let (min, max) = (curve.min_packets, curve.max_packets);
    let (key, problem) = if min >= max || max > MAX_RED_THRESHOLD {
        let problem = format!(
            "is {max}: must be more than `tc {class} red min`, which is {min}, and at most {MAX_RED_THRESHOLD}"
        );
        ("max", problem)
    } else if !(1..=MAX_RED_INVERSE).contains(&curve.inverse_probability) {
        let inverse = curve.inverse_probability;
        (
            "inv prob",
            format!("is {inverse}: must be 1 to {MAX_RED_INVERSE}"),
        )
    } else if !(1..=MAX_RED_WEIGHT).contains(&curve.weight) {
        let weight = curve.weight;
        (
            "weight",
            format!("is {weight}: must be 1 to {MAX_RED_WEIGHT}"),
        )
    } else {
        return Ok(());
    };
    let key = format!("tc {class} red {key}");
    Err(at(colour, error(HqosSection::Red, &key, problem)))
}

fn credits(section: HqosSection, rates: &HqosRates, port: u64) -> Result<HqosCredits, HqosError> {
    let Some((tb_credits_per_period, tb_period)) = share_of_port(rates.tb_rate, port) else {
        let problem = format!(
            "is {} byte/s: the library cannot tell it from {}",
            rates.tb_rate,
            if rates.tb_rate > port / 2 {
                "the rate of the port, which is not the same"
            } else {
                "zero at the rate of the port"
            }
        );
        return Err(error(section, "tb rate", problem));
    };
    let in_period = |rate: u64| in_period(rate, rates.tc_period);
    Ok(HqosCredits {
        tb_period,
        tb_credits_per_period,
        tb_size: rates.tb_size,
        tc_period: in_period(port),
        tc_credits_per_period: rates.tc_rates.map(in_period),
    })
}

/// The library computes in 32 bits, and keeps 8 of each cost.
fn wrr_costs(weights: [u8; BEST_EFFORT_QUEUES]) -> [u8; BEST_EFFORT_QUEUES] {
    let multiple = |a: u32, b: u32| a.wrapping_mul(b) / greatest_divisor(a, b).max(1);
    let [a, b, c, d] = weights.map(u32::from);
    let all = multiple(multiple(a, b), multiple(c, d));
    weights.map(|weight| (all / u32::from(weight).max(1)).to_le_bytes()[0])
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_divisor(b, a % b)
    }
}
