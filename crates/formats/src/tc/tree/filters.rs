//! Filters: what belongs to which class, and the policers that are their actions.

use super::{Htb, MINOR_FIRST, Writer, burst_refused, path_of};
use crate::tc::Feature;
use crate::tc::filter;
use crate::tc::police::{self, Police};
use slicewise_model::{CLASS_DEFAULT, ClassMap, ClassParams, Condition, Discipline, MatchMode};

impl Writer<'_> {
    /// Filters in the order of the classes: the first that matches decides.
    pub(super) fn filters(&mut self, htb: &Htb<'_>) {
        let is_fifo = htb.policy.discipline == Discipline::Fifo;
        let last = MINOR_FIRST + htb.policy.classes.len() - 1;
        for (index, class) in htb.policy.classes.iter().enumerate() {
            let path = path_of(htb.place.path, class);
            if class.set_dscp.is_some() {
                let why = "the kernel rewrites headers with act_pedit alone, which does not find IP \
                           behind a second VLAN tag and leaves the checksum to another action; mark packets where they come \
                           in, or run the policy on the gateway";
                self.refuse(&path, "set_dscp", why.to_owned());
            }
            let policer = self.policer(class, &path);
            let program = match &class.matches {
                Some(map) => filter::compile(map),
                None if policer.is_empty() => continue,
                None => filter::compile(&ClassMap {
                    name: CLASS_DEFAULT.to_owned(),
                    mode: MatchMode::Any,
                    conditions: vec![Condition::Everything],
                }),
            };
            let program = match program {
                Ok(program) => program,
                Err(why) => {
                    self.refuse(&path, "match", why.to_string());
                    continue;
                }
            };
            self.needs.insert(Feature::ClsBpf);
            let minor = if is_fifo { last } else { MINOR_FIRST + index };
            let handle = htb.handle;
            let mut rest = vec![program.to_string()];
            rest.extend(["flowid".to_owned(), format!("{handle:x}:{minor:x}")]);
            rest.extend(policer);
            self.command(
                &format!("What belongs to `{path}`."),
                &format!(
                    "filter add parent {handle:x}: protocol all prio {} bpf bytecode",
                    index + 1
                ),
                &rest,
            );
        }
    }

    /// The action of a class's filter, or none.
    fn policer(&mut self, class: &ClassParams, path: &str) -> Vec<String> {
        let (rate, burst) = match class.police.as_ref().map(police::police) {
            None | Some(Ok(Police::Nothing)) => return Vec::new(),
            Some(Ok(Police::Bucket(rate, burst))) => (rate, burst),
            Some(Err(why)) => {
                self.refuse(path, "police", why);
                return Vec::new();
            }
        };
        if let Some(why) = burst_refused(rate.rate, burst) {
            self.refuse(path, "police", why);
        }
        self.needs.insert(Feature::ActPolice);
        self.rate_difference(&format!("The policer of class `{path}`"), rate.accounting);
        let text = format!(
            "action police rate {}bit burst {} conform-exceed drop/ok",
            rate.rate.bits_per_second(),
            burst.bytes()
        );
        text.split(' ').map(str::to_owned).collect()
    }
}
