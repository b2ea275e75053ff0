//! Commands on the pages print what the pages show.
//!
//! A fenced block `console` whose first line begins with `$ slicewise` is a session: its commands are run in a folder with
//! `studies` and `plans`, and what they print stands below each. A line `...` stands for any lines. A comment
//! `<!-- figures: COMMAND` above a table names the command whose results its cells are taken from ([`figures`]).
//!
//! Sessions fenced by `console by hand` and tables of `figures by hand` take minutes: `.ci/pages` makes these. It seals
//! the tables with a hash of their figures, so that altered ones are found without running anything.
//!
//! Long pages begin with links to their sections ([`contents`]), and all links lead somewhere ([`links`]).

mod contents;
mod figures;
mod links;

use crate::support::{Sandbox, contains, files_with, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with a word: only pages whose path contains it.
const PAGES: &str = "SLICEWISE_PAGES";
/// Environment variable with any value: pages are rewritten.
const WRITE: &str = "SLICEWISE_PAGES_WRITE";
/// Environment variable with a folder, in which results of commands by hand are kept.
const RESULTS: &str = "SLICEWISE_PAGES_RESULTS";
/// Environment variable with a program to run instead of the one just built.
const PROGRAM: &str = "SLICEWISE_PAGES_PROGRAM";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folder that commands of one page are run in.
struct Folder {
    sandbox: Sandbox,
    by_hand: bool,
}

impl Folder {
    fn new(by_hand: bool) -> Self {
        let sandbox = Sandbox::new();
        let link =
            |target: &Path, name| std::os::unix::fs::symlink(target, sandbox.path(name)).unwrap();
        let root = root().canonicalize().unwrap();
        link(&root.join("studies"), "studies");
        link(&root.join("plans"), "plans");
        if by_hand && let Some(results) = std::env::var_os(RESULTS) {
            link(Path::new(&results), "results");
        }
        Self { sandbox, by_hand }
    }

    /// Lines that a command prints on standard output and standard error.
    fn run(&self, command: &str) -> Result<Vec<String>, String> {
        let program = std::env::var_os(PROGRAM)
            .map_or_else(|| env!("CARGO_BIN_EXE_slicewise").into(), PathBuf::from);
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let output = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .env("PATH", path)
            .current_dir(self.sandbox.path(""))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{command}: {error}"))?;
        let printed = text(&output.stdout);
        // 1 is a fault of the program; 2 and 3 are mistakes and verdicts, which a page may show.
        match output.status.code() {
            Some(0 | 2 | 3) => Ok(printed
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect()),
            code => Err(format!("{command} ended with {code:?}: {printed}")),
        }
    }
}

/// Returns the page as commands print it.
fn regenerated(page: &str, folder: &Folder) -> Result<String, String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut made: Vec<String> = Vec::new();
    let mut ran = BTreeSet::new();
    let mut at = 0;
    while at < lines.len() {
        let from = at;
        let located = |what: String| format!("line {}: {what}", from + 1);
        let is_session = lines[at].starts_with("```console")
            && lines
                .get(at + 1)
                .is_some_and(|line| line.starts_with("$ slicewise"));
        let spec = lines[at].strip_prefix("<!-- figures");
        made.push(lines[at].to_owned());
        at += 1;
        if is_session {
            let shown = taken(&lines, &mut at, |line| !line.starts_with("```"));
            let is_run = folder.by_hand || !lines[from].contains("by hand");
            made.extend(if is_run {
                session(shown, folder).map_err(located)?
            } else {
                owned(shown)
            });
        } else if let Some(first) = spec {
            made.extend(table(first, &lines, &mut at, folder, &mut ran).map_err(located)?);
        }
    }
    let end = if page.ends_with('\n') { "\n" } else { "" };
    Ok(made.join("\n") + end)
}

/// Takes the comment that begins with this line, and its table; returns both as they have to be.
fn table(
    first: &str,
    lines: &[&str],
    at: &mut usize,
    folder: &Folder,
    ran: &mut BTreeSet<String>,
) -> Result<Vec<String>, String> {
    let rest = taken(lines, at, |line| line != "-->");
    if *at == lines.len() {
        return Err("the comment does not end".to_owned());
    }
    *at += 1;
    let shown = taken(lines, at, |line| line.starts_with('|'));
    let spec = figures::Spec::read(first, rest)?;
    let by_hand = first.starts_with(" by hand");
    let mut made = owned(rest);
    let rows = if by_hand && !folder.by_hand {
        if spec.sealed_with(shown)? != spec.seal {
            return Err("figures were altered by hand: .ci/pages makes them".to_owned());
        }
        owned(shown)
    } else {
        for command in &spec.commands {
            if ran.insert(command.clone()) {
                folder.run(command)?;
            }
        }
        spec.filled(shown, &folder.sandbox.path("results"))?
    };
    if by_hand && folder.by_hand {
        made.retain(|line| !line.starts_with("seal "));
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        made.push(format!("seal {}", spec.sealed_with(&rows)?));
    }
    made.push("-->".to_owned());
    made.extend(rows);
    Ok(made)
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Takes lines from `at` on while they are wanted.
fn taken<'a, 'b>(
    lines: &'a [&'b str],
    at: &mut usize,
    is_wanted: impl Fn(&str) -> bool,
) -> &'a [&'b str] {
    let from = *at;
    let count = lines[from..]
        .iter()
        .take_while(|line| is_wanted(line))
        .count();
    *at += count;
    &lines[from..from + count]
}

/// Lines of a session with what its commands print. What is shown stays where `...` in it stand for the rest.
fn session(shown: &[&str], folder: &Folder) -> Result<Vec<String>, String> {
    let mut made = Vec::new();
    for part in shown.chunk_by(|_, next| !next.starts_with("$ ")) {
        let (command, shown) = part.split_first().expect("chunks have lines");
        let printed = folder.run(command.trim_start_matches("$ "))?;
        made.push((*command).to_owned());
        made.extend(if matches(shown, &printed) {
            owned(shown)
        } else {
            printed
        });
    }
    Ok(made)
}

/// Tells if lines are those of a pattern, in which `...` stands for any number of them.
fn matches(pattern: &[&str], lines: &[String]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..])),
        Some((first, rest)) => {
            lines.first().is_some_and(|line| line == first) && matches(rest, &lines[1..])
        }
    }
}

/// Lines that differ, with their numbers.
fn differences(shown: &str, made: &str) -> String {
    let lines = shown.lines().zip(made.lines()).enumerate();
    let different = lines.filter(|(_, (shown, made))| shown != made).take(10);
    different
        .map(|(index, (shown, made))| {
            format!(
                "line {}\n  shown    {shown}\n  printed  {made}\n",
                index + 1
            )
        })
        .collect()
}

/// Checks pages, or rewrites them where that is asked for.
fn check(by_hand: bool) {
    let wanted = std::env::var(PAGES).unwrap_or_default();
    let mut wrong = String::new();
    let pages = files_with(&root().join("docs"), "md")
        .into_iter()
        .chain([root().join("README.md")]);
    for path in pages.filter(|path| path.to_string_lossy().contains(&wanted)) {
        let shown = fs::read_to_string(&path).unwrap();
        match regenerated(&contents::with_contents(&shown), &Folder::new(by_hand)) {
            Ok(made) if made == shown => {}
            Ok(made) if std::env::var_os(WRITE).is_some() => fs::write(&path, made).unwrap(),
            Ok(made) => wrong += &format!("{}: {}\n", path.display(), differences(&shown, &made)),
            Err(what) => wrong += &format!("{}: {what}\n", path.display()),
        }
    }
    assert!(wrong.is_empty(), "{wrong}{WRITE}=1 rewrites the pages");
}

#[test]
fn pages_show_what_their_commands_print() {
    check(false);
}

#[test]
#[ignore = "takes an hour; .ci/pages runs it with a release build"]
fn pages_show_what_their_commands_by_hand_print() {
    check(true);
}

#[test]
fn a_long_page_begins_with_links_to_its_sections() {
    let short = "# A page\n\nText.\n\n## One `x`, two\n\n## Three\n".to_owned();
    assert_eq!(contents::with_contents(&short), short);
    let long = format!("{short}{}", "\nMore.\n".repeat(100));
    let made = contents::with_contents(&long);
    let contents = "# A page\n\n[One `x`, two](#one-x-two) ·\n[Three](#three)\n\nText.\n";
    assert!(made.starts_with(contents), "{made}");
    assert_eq!(contents::with_contents(&made), made);
    let renamed = made.replace("## Three", "## Four");
    contains(
        &contents::with_contents(&renamed),
        "two) ·\n[Four](#four)\n\nText.",
    );
}

#[test]
fn a_figure_that_was_altered_is_found() {
    let page = "\
```console
$ slicewise plan plans/three-kinds.yaml
...
```

<!-- figures: slicewise run studies/voice-and-bulk.yaml --repetitions 2
each slice=voice span=steady quantity=loss_ratio scenario=storm as=%
rows policy=fifo | policy=priority
columns - | value=mean | -
-->
| policy | lost | published |
|---|---|---|
| FIFO | | much |
| priority | 0 % | none |

<!-- figures: slicewise run studies/voice-and-bulk.yaml --repetitions 2
run slicewise run studies/voice-and-bulk.yaml --repetitions 2
each slice=voice span=steady quantity=loss_ratio
rows policy=fifo scenario=storm as=% + policy=priority | -
-->
| policies | lost |
|---|---|
| both | **?** under FIFO, **0 %** by priority |
| others | much |
";
    let folder = Folder::new(false);
    let made = regenerated(page, &folder).unwrap();
    contains(&made, "| FIFO | 17.5 % | much |\n| priority | 0 % | none |");
    contains(
        &made,
        "| both | **17.5 %** under FIFO, **0 %** by priority |",
    );
    assert_eq!(regenerated(&made, &folder).unwrap(), made);
    let unknown = made.replace("| much |\n", "| **much** |\n");
    let unknown = regenerated(&unknown, &folder).unwrap_err();
    contains(&unknown, "0 figures are described, 1 are in bold: | others");
    let altered = made
        .replace("17.5 %", "17.6 %")
        .replace("...", "no such line");
    let by_hand = made.replace("figures:", "figures by hand:");
    let unsealed = regenerated(&by_hand, &folder).unwrap_err();
    contains(&unsealed, "line 6: figures were altered");
    let mended = regenerated(&altered, &folder).unwrap();
    let said = differences(&altered, &mended);
    contains(&said, "shown    no such line");
    contains(&mended, "| FIFO | 17.5 % | much |");
}
