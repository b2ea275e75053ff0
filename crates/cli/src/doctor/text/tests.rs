use super::*;
use insta::assert_snapshot;

fn finding(group: Group, name: &'static str, state: State, detail: &str) -> Finding {
    Finding {
        group,
        name,
        state,
        detail: detail.to_owned(),
        needed_for: "what it is needed for",
        stops: Vec::new(),
        fix: None,
    }
}

fn on_every_run(finding: Finding) -> Finding {
    let stops = vec![Purpose::RunOnGateway, Purpose::RunOnTc, Purpose::RunOnDpdk];
    Finding { stops, ..finding }
}

fn with_fix(fix: Fix, finding: Finding) -> Finding {
    let fix = Some(fix);
    Finding { fix, ..finding }
}

fn page(columns: usize, findings: Vec<Finding>) -> String {
    let colours = false;
    Page { columns, colours }.write(&Examination { findings })
}

fn some() -> Vec<Finding> {
    let program = |name, package| {
        let found = finding(Group::Programs, name, State::Missing, "not installed");
        with_fix(Fix::Install(package), on_every_run(found))
    };
    let red = "not in this kernel";
    let red = finding(Group::TrafficControl, "sch_red", State::Missing, red);
    vec![
        finding(Group::Machine, "processors", State::Ready, "2"),
        with_fix(
            Fix::Advice("a quieter host".to_owned()),
            finding(Group::Machine, "steal", State::Limited, "9.3 %"),
        ),
        program("tc", "iproute2"),
        program("tcpdump", "tcpdump"),
        with_fix(
            Fix::Advice("a kernel with CONFIG_NET_SCH_RED".to_owned()),
            Finding {
                needed_for: "policies with `wred` on tc",
                ..red
            },
        ),
    ]
}

#[test]
fn missing_items_come_with_fixes_and_one_install_command() {
    assert_snapshot!(page(60, some()), @r"
    Machine
      ✓ processors  2 (for what it is needed for)
      ! steal       9.3 %
                    needed for what it is needed for
                    fix: a quieter host

    Programs
      ✗ tc          not installed
                    needed for what it is needed for
                    run: apt-get install iproute2
      ✗ tcpdump     not installed
                    needed for what it is needed for
                    run: apt-get install tcpdump

    Traffic control
      ✗ sch_red     not in this kernel
                    needed for policies with `wred` on tc
                    fix: a kernel with CONFIG_NET_SCH_RED

    This machine can run `slicewise gateway`; it cannot run
    `slicewise run --on gateway`, `slicewise run --on tc` or
    `slicewise run --on dpdk`. Not possible: policies with
    `wred` on tc.
    What is missing is installed by:

        apt-get install iproute2 tcpdump
    ");
}

#[test]
fn narrow_terminals_have_details_below_names() {
    assert_snapshot!(page(40, some()), @r"
    Machine
      ✓ processors
          2 (for what it is needed for)
      ! steal
          9.3 %
          needed for what it is needed for
          fix: a quieter host

    Programs
      ✗ tc
          not installed
          needed for what it is needed for
          run: apt-get install iproute2
      ✗ tcpdump
          not installed
          needed for what it is needed for
          run: apt-get install tcpdump

    Traffic control
      ✗ sch_red
          not in this kernel
          needed for policies with `wred` on
          tc
          fix: a kernel with
          CONFIG_NET_SCH_RED

    This machine can run `slicewise
    gateway`; it cannot run `slicewise run
    --on gateway`, `slicewise run --on tc`
    or `slicewise run --on dpdk`. Not
    possible: policies with `wred` on tc.
    What is missing is installed by:

        apt-get install iproute2 tcpdump
    ");
}

#[test]
fn what_is_not_known_for_one_reason_is_one_entry() {
    let untried = |name| {
        let found = finding(Group::Network, name, State::Unknown, "needs root");
        with_fix(Fix::Run("sudo slicewise doctor".to_owned()), found)
    };
    let root = finding(Group::Permission, "root", State::Missing, "user 7");
    let findings = vec![
        with_fix(
            Fix::Run("sudo slicewise doctor".to_owned()),
            on_every_run(root),
        ),
        untried("AF_XDP"),
        untried("bridge"),
        finding(Group::Network, "veth", State::Unknown, "another reason"),
    ];
    assert_snapshot!(page(80, findings), @r"
    Permission
      ✗ root    user 7
                needed for what it is needed for
                run: sudo slicewise doctor

    Network
      ? AF_XDP, bridge: needs root: sudo slicewise doctor
      ? veth    another reason
                needed for what it is needed for

    This user can run `slicewise gateway`; it cannot run `slicewise run --on
    gateway`, `slicewise run --on tc` or `slicewise run --on dpdk`. What root can
    run: sudo slicewise doctor
    ");
}

#[test]
fn a_machine_of_which_something_is_not_known_is_promised_nothing() {
    let lock = finding(Group::Testbed, "lock", State::Unknown, "not tried");
    let (sentence, rest) = summary(&Examination {
        findings: vec![on_every_run(lock)],
    });
    assert_snapshot!(sentence, @"This machine can run `slicewise gateway`; it is not known whether it can run `slicewise run --on gateway`, `slicewise run --on tc` or `slicewise run --on dpdk`.");
    assert_eq!(rest, "");
}

#[test]
fn colours_change_no_line() {
    let examination = Examination { findings: some() };
    let write = |colours| {
        Page {
            columns: 60,
            colours,
        }
        .write(&examination)
    };
    let mut plain = String::new();
    let mut in_escape = false;
    for letter in write(true).chars() {
        match letter {
            '\u{1b}' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            _ => plain.push(letter),
        }
    }
    assert_eq!(plain, write(false));
    assert!(write(true).contains("\u{1b}[31m✗"));
}
