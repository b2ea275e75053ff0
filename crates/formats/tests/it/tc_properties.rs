//! Any valid policy gives commands, or all the reasons why not.

use crate::support::any_policy;
use proptest::prelude::*;
use slicewise_formats::tc;
use slicewise_model::Rate;
use slicewise_units::{Accounting, BitRate};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_valid_policy_gives_commands_or_reasons(
        spec in any_policy::policy(true),
        rate in prop_oneof![Just(35_000_000u64), 0..=BitRate::MAX.bits_per_second(), 0..100u64],
        layer in prop::sample::select(vec![Accounting::L1, Accounting::L2, Accounting::L3]),
    ) {
        let link = Rate { rate: BitRate::new(rate), accounting: layer };
        let Ok(params) = spec.resolve(BitRate::new(rate.max(1))) else {
            return Ok(());
        };
        match tc::write(&params, link, "eth0") {
            Err(error) => prop_assert!(!error.problems.is_empty()),
            Ok(config) => {
                prop_assert!(!config.commands.is_empty());
                for command in &config.commands {
                    prop_assert_eq!(&command.arguments[1..4], ["add", "dev", "eth0"]);
                }
                // One link, one way in: everything hangs below it.
                let roots = config.commands.iter().filter(|c| c.arguments[4] == "root").count();
                prop_assert_eq!(roots, 1);
            }
        }
    }
}
