//! Commands in network namespaces. Needs root; says so and passes where it cannot.

use crate::support::{Namespace, run};
use slicewise_live::sys::namespace::enter_before_exec;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// A command that is to run in a namespace.
fn command(namespace: &Namespace, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    enter_before_exec(&mut command, Some(namespace.name())).unwrap();
    command
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_command_runs_in_the_namespace_and_in_a_group_of_its_own() {
    let Some(namespace) = Namespace::new("child") else {
        return;
    };
    let here = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let mut started = command(&namespace, &["readlink", "/proc/self/ns/net"]);
    let there = text(started.output().unwrap());
    let wanted = run(&format!(
        "ip netns exec {} readlink /proc/self/ns/net",
        namespace.name()
    ));
    assert_eq!(there, wanted.unwrap().trim());
    assert_ne!(there, here.to_str().unwrap());

    let mut started = command(&namespace, &["cat", "/proc/self/stat"]);
    let stat = text(started.output().unwrap());
    let fields: Vec<&str> = stat.split_whitespace().collect();
    assert_eq!(fields[0], fields[4], "pid and process group: {stat}");
}

#[test]
fn a_command_is_killed_when_the_thread_that_started_it_ends() {
    let Some(namespace) = Namespace::new("killed") else {
        return;
    };
    let mut started = command(&namespace, &["sleep", "60"]);
    let child = std::thread::spawn(move || started.spawn().unwrap()).join();
    let status = child.unwrap().wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{status}");
}

#[test]
fn refuses_a_namespace_that_is_not_there() {
    let mut command = Command::new("true");
    let refused = enter_before_exec(&mut command, Some("nobody-has-made-this")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::NotFound);
}
