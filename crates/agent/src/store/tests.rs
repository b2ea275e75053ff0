use super::*;
use proptest::prelude::*;
use std::fs;

fn slice(name: &str, version: u64) -> GatewaySlice {
    GatewaySlice {
        name: name.to_owned(),
        link: "uplink".to_owned(),
        tenant: "default".to_owned(),
        tenant_weight: 1,
        forward: None,
        backward: None,
        version,
    }
}

fn open(path: &Path) -> Result<Opened, StateError> {
    Store::open(path, "edge", "uplink")
}

fn put(name: &str, version: u64) -> Record {
    Record::Put(Box::new(slice(name, version)))
}

fn never() -> Kept {
    panic!("it is short")
}

/// Slices and their versions.
fn versions(kept: &Kept) -> Vec<(&str, u64)> {
    let slices = kept.slices.values();
    slices
        .map(|slice| (slice.name.as_str(), slice.version))
        .collect()
}

#[test]
fn what_was_appended_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let Opened {
        mut store, kept, ..
    } = open(&path).unwrap();
    assert_eq!(kept, Kept::default());
    let first = [put("a", 1), put("b", 1), Record::Generation(4)];
    store.append(&first, never).unwrap();
    let second = [
        put("a", 2),
        Record::Remove("b".to_owned()),
        Record::Generation(5),
    ];
    store.append(&second, never).unwrap();
    drop(store);
    let opened = open(&path).unwrap();
    assert_eq!(opened.warning, None);
    assert_eq!(opened.kept.generation, 5);
    assert_eq!(versions(&opened.kept), [("a", 2)]);
    assert_eq!(opened.kept.removed, BTreeSet::from(["b".to_owned()]));
    let mut store = opened.store;
    store
        .append(&[Record::Gone(vec!["b".to_owned()])], never)
        .unwrap();
    drop(store);
    assert!(open(&path).unwrap().kept.removed.is_empty());
}

#[test]
fn two_gateways_cannot_use_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut first = open(&path).unwrap();
    assert!(matches!(open(&path), Err(StateError::InUse { .. })));
    first.store.rewrite(&Kept::default()).unwrap();
    assert!(matches!(open(&path), Err(StateError::InUse { .. })));
}

#[test]
fn a_file_of_a_newer_version_another_gateway_or_something_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let refused = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert_eq!(fs::read(&path).unwrap(), text);
        error.replace(path.to_str().unwrap(), "STATE")
    };
    let header = |version, gateway: &str| {
        let mut line = Vec::new();
        Record::Header(Header {
            version,
            gateway: gateway.to_owned(),
            link: "uplink".to_owned(),
            instance: String::new(),
            store: String::new(),
        })
        .write(&mut line);
        line
    };
    insta::assert_snapshot!(refused(&header(7, "edge")), @"STATE has format 7, and this version reads up to 1: start the version that wrote it, or move the file away to get the slices from the controller");
    insta::assert_snapshot!(refused(&header(1, "core")), @"STATE is the state of link `uplink` of gateway `core`: name another file in `state`, or move this one away");
    insta::assert_snapshot!(refused(b"[interfaces]\n"), @"STATE is not a state file of a gateway: name another file in `state`");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(open(&link), Err(StateError::Foreign { .. })));
}

#[test]
fn a_file_that_is_damaged_in_the_middle_is_kept_as_a_copy_and_all_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut store = open(&path).unwrap().store;
    store
        .append(&[put("a", 1), Record::Generation(1)], never)
        .unwrap();
    let whole = fs::metadata(&path).unwrap().len();
    store
        .append(&[put("b", 1), Record::Generation(2)], never)
        .unwrap();
    store
        .append(&[put("c", 1), Record::Generation(3)], never)
        .unwrap();
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(whole).unwrap() + 40] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for _ in 0..2 {
        let opened = open(&path).unwrap();
        assert_eq!(
            (opened.kept.generation, versions(&opened.kept)),
            (0, vec![("a", 1)])
        );
    }
    assert_eq!(
        fs::read(folder.path().join("state.damaged")).unwrap(),
        bytes
    );
}

#[test]
fn a_log_that_grows_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut store = open(&path).unwrap().store;
    let kept = |generation| Kept {
        generation,
        slices: BTreeMap::from([("a".to_owned(), slice("a", generation))]),
        removed: BTreeSet::new(),
        refused: BTreeSet::from(["x".to_owned()]),
    };
    for generation in 1..=20_000 {
        let records = [put("a", generation), Record::Generation(generation)];
        // Without the wait for the disk, which this test is not about.
        let mut lines = Vec::new();
        records.iter().for_each(|record| record.write(&mut lines));
        if generation % 100 == 0 {
            store.append(&records, || kept(generation)).unwrap();
        } else {
            store.file.seek(SeekFrom::Start(store.len)).unwrap();
            store.file.write_all(&lines).unwrap();
            store.len += lines.len() as u64;
        }
    }
    drop(store);
    assert!(fs::metadata(&path).unwrap().len() < 2 * LEAST_REWRITTEN_BYTES);
    assert_eq!(open(&path).unwrap().kept, kept(20_000));
}

#[test]
fn what_could_not_be_written_is_written_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut store = open(&path).unwrap().store;
    // Nothing can be written to a file that was opened for reading.
    store.file = File::open(&path).unwrap();
    store
        .append(&[put("a", 1), Record::Generation(1)], never)
        .unwrap_err();
    assert!(store.is_behind());
    let kept = || Kept {
        generation: 2,
        slices: BTreeMap::from([("a".to_owned(), slice("a", 1))]),
        removed: BTreeSet::new(),
        refused: BTreeSet::from(["x".to_owned()]),
    };
    // A gateway that was killed left this.
    fs::write(folder.path().join("state.new"), "").unwrap();
    store.append(&[Record::Generation(2)], kept).unwrap();
    assert!(!store.is_behind());
    drop(store);
    assert_eq!(open(&path).unwrap().kept, kept());
    fs::write(folder.path().join("state.new"), "mine").unwrap();
    let mut store = open(&path).unwrap().store;
    store.rewrite(&kept()).unwrap_err();
    assert_eq!(fs::read(folder.path().join("state.new")).unwrap(), b"mine");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A process killed while it writes leaves a beginning of what it wrote.
    #[test]
    fn whatever_is_left_of_a_write_the_state_is_that_of_a_complete_generation(
        batches in prop::collection::vec(prop::collection::vec((0u8..4, 0u64..9), 1..4), 1..6),
        cut in any::<prop::sample::Index>(),
        garbage in prop::collection::vec(any::<u8>().prop_filter("a line", |&byte| byte != b'\n'), 0..20),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut store = open(&path).unwrap().store;
        let first = store.len;
        let mut expected = vec![(first, Kept::default())];
        let mut kept = Kept::default();
        for (generation, batch) in (1..).zip(batches) {
            let mut records: Vec<Record> = batch
                .into_iter()
                .map(|(name, version)| match version {
                    0 => Record::Remove(format!("s{name}")),
                    _ => put(&format!("s{name}"), version),
                })
                .collect();
            records.push(Record::Generation(generation));
            store.append(&records, never).unwrap();
            records.into_iter().for_each(|record| kept.apply(record));
            expected.push((store.len, kept.clone()));
        }
        let whole = store.len;
        drop(store);
        let at = first + cut.index(usize::try_from(whole - first + 1).unwrap()) as u64;
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(usize::try_from(at).unwrap());
        bytes.extend(garbage);
        fs::write(&path, &bytes).unwrap();
        let (_, expected) = expected.iter().rev().find(|(len, _)| *len <= at).unwrap();
        let opened = open(&path).unwrap();
        prop_assert_eq!(&opened.kept, expected);
        let mut store = opened.store;
        store.append(&[put("last", 1), Record::Generation(99)], never).unwrap();
        drop(store);
        let again = open(&path).unwrap();
        prop_assert_eq!(again.kept.generation, 99);
        prop_assert_eq!(again.kept.slices.len(), expected.slices.keys().filter(|name| *name != "last").count() + 1);
        prop_assert_eq!(again.warning, None);
    }
}
