//! Tokens, backups, stores of other versions, health.

use crate::support::{
    Server, TestStore, announcement, each_with_link, execute, for_each_store, params, put, remove,
    said, slice, token, try_put, with_link,
};
use slicewise_api::{
    Client, CounterReport, DelayPercentiles, DirectionCounters, NewToken, Precondition, Scope,
    Slice, SliceCounters, SliceQuery, SliceState, Tenant,
};
use slicewise_controller::{ControllerError, Location, run, run_backup, run_restore};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

#[test]
fn the_tenant_of_a_token_is_the_default_and_a_slice_keeps_its_own() {
    each_with_link(|store, server, open| {
        open.put_tenant("red", &Tenant::default()).unwrap();
        let red = server.client_of(&token(store, "portal", "tenant:red"));
        let admin = server.client_of(&token(store, "admin", "admin"));
        let mut unstated = slice("gold", 1, 1);
        unstated.tenant = String::new();
        assert!(red.offer(&unstated).unwrap().accepted);
        let put = |client: &Client, slice: &Slice| {
            let answer = put(client, slice);
            answer.value.slice.tenant
        };
        assert_eq!(put(&red, &unstated), "red");
        unstated.matches[0].vlan = Some(2);
        assert!(admin.offer(&unstated).unwrap().accepted);
        assert_eq!(put(&admin, &unstated), "red");
        unstated.name = "silver".to_owned();
        unstated.matches[0].vlan = Some(3);
        assert_eq!(put(&admin, &unstated), "default");
    });
}

#[test]
fn a_tenant_sees_and_changes_only_its_own_slices() {
    each_with_link(|store, server, open| {
        for tenant in ["red", "blue"] {
            open.put_tenant(tenant, &Tenant::default()).unwrap();
        }
        let red = server.client_of(&token(store, "red-portal", "tenant:red"));
        let blue = server.client_of(&token(store, "blue-portal", "tenant:blue"));
        let viewer = server.client_of(&token(store, "screen", "viewer"));
        let gateway = server.client_of(&token(store, "gateway", "gateway:gw"));
        let of = |name: &str, vlan, tenant: &str| {
            let mut slice = slice(name, vlan, 10);
            slice.tenant = tenant.to_owned();
            slice
        };
        put(&red, &of("red-1", 1, "red"));
        put(&blue, &of("blue-1", 2, "blue"));
        let status = |error: slicewise_api::ClientError| error.status().unwrap();
        // Not read, changed, removed, or found by its packets.
        assert_eq!(status(blue.slice("red-1").unwrap_err()), 404);
        assert_eq!(
            status(blue.slice_counters("red-1", false).unwrap_err()),
            404
        );
        assert_eq!(
            status(
                blue.remove_slice("red-1", Precondition::None, None)
                    .unwrap_err()
            ),
            404
        );
        assert_eq!(
            status(try_put(&blue, &of("red-1", 1, "blue")).unwrap_err()),
            409
        );
        assert_eq!(status(try_put(&blue, &of("x", 3, "red")).unwrap_err()), 403);
        let overlap = try_put(&blue, &of("x", 1, "blue")).unwrap_err();
        insta::assert_snapshot!(overlap, @"some packets that match slice `x` belong to a slice of another tenant: state header fields that tell them apart");
        let names = |query: SliceQuery| {
            blue.slices(&query)
                .unwrap()
                .items
                .into_iter()
                .map(|record| record.slice.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(SliceQuery::default()), ["blue-1"]);
        assert!(
            names(SliceQuery {
                tenant: Some("red".into()),
                ..SliceQuery::default()
            })
            .is_empty()
        );
        let history = blue.generations(None, None).unwrap();
        assert_eq!(history.items.len(), 1);
        assert_eq!(status(blue.generation(1).unwrap_err()), 404);
        assert!(
            blue.events(0, None)
                .unwrap()
                .items
                .iter()
                .all(|event| event.tenant.as_deref() == Some("blue"))
        );
        assert_eq!(blue.tenants().unwrap().len(), 1);
        // Nor anything that is of all tenants.
        let statuses = [
            status(blue.restore(1, None).unwrap_err()),
            status(blue.put_tenant("blue", &Tenant::default()).unwrap_err()),
            status(blue.tokens().unwrap_err()),
            status(blue.audit(0).unwrap_err()),
            status(blue.gateways().unwrap_err()),
            status(blue.desired("gw", 0, Duration::ZERO).unwrap_err()),
            status(try_put(&viewer, &of("v", 9, "red")).unwrap_err()),
            status(viewer.tokens().unwrap_err()),
            status(gateway.slices(&SliceQuery::default()).unwrap_err()),
            status(gateway.desired("other", 0, Duration::ZERO).unwrap_err()),
        ];
        assert_eq!(statuses, [403; 10]);
        assert_eq!(
            viewer.slices(&SliceQuery::default()).unwrap().items.len(),
            2
        );
        assert!(
            gateway
                .desired("gw", 0, Duration::ZERO)
                .unwrap()
                .snapshot
                .is_some()
        );
        // From the first token on, every request needs one.
        assert_eq!(open.links().unwrap_err().status(), Some(401));
    });
}

#[test]
fn a_token_is_kept_as_a_hash_and_can_be_revoked() {
    each_with_link(|store, server, _| {
        let secret = token(store, "admin", "admin");
        assert_eq!(secret.len(), "slicewise_".len() + 64);
        let admin = server.client_of(&secret);
        let made = admin
            .add_token(&NewToken {
                name: "second".into(),
                scope: Scope::Operator,
            })
            .unwrap();
        assert_eq!(admin.tokens().unwrap().len(), 2);
        let second = server.client_of(&made.token);
        second.links().unwrap();
        admin.remove_token("second").unwrap();
        assert_eq!(second.links().unwrap_err().status(), Some(401));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup");
        run_backup(&store.location, &file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&secret) && !text.contains(&secret["slicewise_".len()..]));
        let audit = admin.audit(0).unwrap().items;
        let requests: Vec<String> = audit
            .iter()
            .map(|entry| format!("{} {} {}", entry.by, entry.request, entry.status))
            .collect();
        insta::assert_snapshot!(requests.join("\n"), @r"
            local PUT /v1/gateways/gw 200
            command-line slicewise controller token add 201
            admin POST /v1/tokens 201
            admin DELETE /v1/tokens/second 204
            ");
    });
}

#[test]
fn what_others_can_reach_needs_tls_and_a_token() {
    let store = TestStore::sqlite();
    let listen: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let refused = run(&store.location, &params(listen)).unwrap_err();
    insta::assert_snapshot!(refused, @"0.0.0.0:0 can be reached from other machines: that needs TLS (`--tls-certificate FILE --tls-key FILE`) and a token (`slicewise controller token add NAME --scope admin`)");
    assert!(refused.is_mistake());
    token(&store, "admin", "admin");
    assert!(
        run(&store.location, &params(listen)).is_err(),
        "a token alone is not enough"
    );
}

#[test]
fn a_backup_is_restored_into_a_store_of_either_kind() {
    for from in TestStore::each() {
        let (server, client) = with_link(&from);
        put(&client, &slice("gold", 1, 60));
        put(&client, &slice("old", 2, 10));
        remove(&client, "old");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup");
        let rows = run_backup(&from.location, &file).unwrap();
        assert!(
            matches!(
                run_backup(&from.location, &file),
                Err(ControllerError::Backup(_))
            ),
            "it exists"
        );
        drop(server);
        for to in TestStore::each() {
            let restored = run_restore(&to.location, &file).unwrap();
            assert_eq!((restored.rows, restored.findings.len()), (rows, 0));
            let refused = run_restore(&to.location, &file).unwrap_err().to_string();
            assert!(refused.contains("is not empty"), "{refused}");
            let server = Server::start(&to);
            let client = server.client();
            assert_eq!(
                client.link("uplink").unwrap().forward.promised.rate_bps,
                70_000_000
            );
            assert_eq!(client.slice("gold").unwrap().state, SliceState::Admitted);
            // Whatever the gateway had: a later generation is from another history.
            for after in [0, 3, 4_000] {
                let desired = client.desired("gw", after, Duration::ZERO).unwrap();
                assert_eq!(
                    (desired.snapshot.unwrap().len(), desired.draining.len()),
                    (1, 1)
                );
                assert!(desired.generation > 1 << 32);
            }
            let late = slicewise_api::Acknowledgement {
                gone: vec!["old".into()],
                ..said(3)
            };
            client.acknowledge("gw", &late).unwrap();
            assert_eq!(client.slice("old").unwrap().state, SliceState::Draining);
            crate::promises::check_promises(&client);
            let made = put(&client, &slice("new", 5, 1)).value;
            assert!(made.generation > 1 << 32);
        }
    }
}

#[test]
fn a_backup_that_is_not_whole_changes_nothing() {
    let from = TestStore::sqlite();
    let (_server, client) = with_link(&from);
    put(&client, &slice("gold", 1, 60));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    run_backup(&from.location, &file).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let damaged = [
        lines[..lines.len() - 1].join("\n"),
        lines
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != 5)
            .map(|(_, line)| *line)
            .collect::<Vec<_>>()
            .join("\n"),
        lines[1..].join("\n"),
        text.replacen("\"schema_version\":", "\"schema_version\":9", 1),
        text[..text.len() / 2].to_owned(),
        format!("{text}{{}}\n"),
    ];
    let to = TestStore::sqlite();
    for text in damaged {
        std::fs::write(&file, text).unwrap();
        assert!(matches!(
            run_restore(&to.location, &file),
            Err(ControllerError::Backup(_))
        ));
    }
    std::fs::write(&file, text).unwrap();
    run_restore(&to.location, &file).unwrap();
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_not_changed() {
    for_each_store(|store| {
        drop(Server::start(store));
        execute(store, "UPDATE schema_version SET version = 99".to_owned()).unwrap();
        let refused = run(&store.location, &params("127.0.0.1:0".parse().unwrap())).unwrap_err();
        assert!(refused.is_mistake());
        let text = refused.to_string();
        assert!(
            text.contains("schema version 99") && text.contains("nothing was changed"),
            "{text}"
        );
    });
}

#[test]
fn the_audit_log_only_grows() {
    each_with_link(|store, _server, client| {
        assert_eq!(client.audit(0).unwrap().items.len(), 1);
        for statement in ["DELETE FROM audit", "UPDATE audit SET actor = 'nobody'"] {
            assert!(execute(store, statement.to_owned()).is_err(), "{statement}");
        }
        assert_eq!(client.audit(0).unwrap().items.len(), 1);
    });
}

/// A file system of 2 MB, unmounted in the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where it cannot be mounted.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(folder.path())
            .output();
        mount
            .is_ok_and(|done| done.status.success())
            .then_some(Self(folder))
    }
}

impl SmallDisk {
    fn grow(&self) {
        let grown = Command::new("mount")
            .args(["-o", "remount,size=16m"])
            .arg(self.0.path())
            .status();
        assert!(grown.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_that_is_full_refuses_changes_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        println!("no file system can be mounted here (it needs root): a full disk is not tested");
        return;
    };
    let location = Location::Sqlite(disk.0.path().join("store.sqlite"));
    let store = TestStore::at(location);
    let (server, client) = with_link(&store);
    let mut made = Vec::new();
    let with_vlan = |vlan: u16| {
        let mut slice = slice(&format!("s{vlan}"), vlan, 1);
        slice.forward = Some(slicewise_api::Terms::default());
        slice
    };
    let refused = loop {
        let vlan = u16::try_from(made.len()).unwrap() + 1;
        match client.put_slice(
            &with_vlan(vlan),
            Precondition::None,
            Some(&format!("{vlan}")),
        ) {
            Ok(answer) => made.push(answer.value.slice.name),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.status(), Some(507));
    insta::assert_snapshot!(refused, @"the disk of the store is full; nothing was changed, and slices stay as they are: make room");
    let vlan = u16::try_from(made.len()).unwrap() + 1;
    let repeat = || {
        client.put_slice(
            &with_vlan(vlan),
            Precondition::None,
            Some(&format!("{vlan}")),
        )
    };
    assert_eq!(server.ask("GET", "/readyz", &[], None).status, 200);
    // How many fit depends on what else the store writes meanwhile.
    assert!(made.len() > 1);
    let names = |client: &Client| {
        let mut query = SliceQuery {
            limit: Some(1000),
            ..SliceQuery::default()
        };
        let mut names = Vec::new();
        loop {
            let page = client.slices(&query).unwrap();
            names.extend(page.items.into_iter().map(|record| record.slice.name));
            query.after = page.next;
            if query.after.is_none() {
                break names;
            }
        }
    };
    made.sort();
    assert_eq!(names(&client), made, "reading goes on");
    // Nothing of what was refused is there: neither a part of the slice, nor a generation, nor an answer for its key.
    let newest = client.generations(None, Some(1)).unwrap().items;
    assert_eq!(newest[0].generation, made.len() as u64);
    crate::promises::check_promises(&client);
    disk.grow();
    let late = repeat().unwrap();
    assert_eq!(
        (late.created, late.value.generation),
        (true, made.len() as u64 + 1)
    );
    made.push(late.value.slice.name);
    made.sort();
    drop(server);
    assert_eq!(names(&Server::start(&store).client()), made);
}

#[test]
fn each_slice_has_metrics_that_its_tenant_can_scrape() {
    each_with_link(|store, server, open| {
        open.put_tenant("red", &Tenant::default()).unwrap();
        let red = format!("Bearer {}", token(store, "red", "tenant:red"));
        let admin = format!("Bearer {}", token(store, "admin", "admin"));
        let client = server.client_of(admin.strip_prefix("Bearer ").unwrap());
        let counters = |name: &str, bytes: u64| SliceCounters {
            name: name.to_owned(),
            forward: Some(DirectionCounters {
                sent_frames: 500,
                sent_bytes: bytes,
                dropped: [("full".to_owned(), 3)].into(),
                waiting_frames: 2,
                delay_ns: Some(DelayPercentiles {
                    p50: 1_000,
                    p99: 2_000_000,
                    largest: 3_000_000,
                }),
                ..DirectionCounters::default()
            }),
            backward: None,
        };
        for (name, vlan, tenant) in [("gold", 1, "red"), ("other", 2, "default")] {
            let one = Slice {
                tenant: tenant.to_owned(),
                ..slice(name, vlan, 1)
            };
            put(&client, &one);
        }
        // What is no slice of the gateway is not shown.
        let report = CounterReport {
            interval_ns: 500_000_000,
            slices: ["gold", "other", "nothing"]
                .map(|name| counters(name, 62_500))
                .into(),
            ..CounterReport::default()
        };
        client.report_counters("gw", &report).unwrap();
        let scrape = |bearer: &str| {
            let headers = [("authorization", bearer)];
            server.ask("GET", "/metrics/slices", &headers, None).text
        };
        let own = scrape(&red);
        insta::assert_snapshot!(own.lines().filter(|line| !line.starts_with("# HELP")).collect::<Vec<_>>().join("\n"), @r#"
            # TYPE slicewise_slice_guaranteed_bps gauge
            slicewise_slice_guaranteed_bps{slice="gold",tenant="red",direction="forward"} 1000000
            # TYPE slicewise_slice_bound_seconds gauge
            slicewise_slice_bound_seconds{slice="gold",tenant="red",direction="forward"} 0.05
            # TYPE slicewise_slice_sent_bps gauge
            slicewise_slice_sent_bps{slice="gold",tenant="red",direction="forward",gateway="gw"} 1000000
            # TYPE slicewise_slice_sent_frames_per_second gauge
            slicewise_slice_sent_frames_per_second{slice="gold",tenant="red",direction="forward",gateway="gw"} 1000
            # TYPE slicewise_slice_dropped_frames_per_second gauge
            slicewise_slice_dropped_frames_per_second{slice="gold",tenant="red",direction="forward",gateway="gw"} 6
            # TYPE slicewise_slice_waiting_frames gauge
            slicewise_slice_waiting_frames{slice="gold",tenant="red",direction="forward",gateway="gw"} 2
            # TYPE slicewise_slice_delay_seconds gauge
            slicewise_slice_delay_seconds{slice="gold",tenant="red",direction="forward",gateway="gw",quantile="0.5"} 0.000001
            slicewise_slice_delay_seconds{slice="gold",tenant="red",direction="forward",gateway="gw",quantile="0.99"} 0.002
            slicewise_slice_delay_seconds{slice="gold",tenant="red",direction="forward",gateway="gw",quantile="1"} 0.003
            # EOF
            "#);
        let all = scrape(&admin);
        assert_eq!(all.matches("slice=\"other\"").count(), 9, "{all}");
        assert!(!all.contains("nothing"));
    });
}

#[test]
fn health_readiness_metrics_and_the_dashboard_are_served() {
    each_with_link(|_, server, client| {
        put(&client, &slice("gold", 1, 60));
        for path in ["/healthz", "/readyz"] {
            assert_eq!(server.ask("GET", path, &[], None).text, "ok\n");
        }
        let metrics = server.ask("GET", "/metrics", &[], None).text;
        for line in [
            "slicewise_controller_slices{state=\"admitted\"} 1",
            "slicewise_controller_promised_bps{link=\"uplink\",direction=\"forward\"} 60000000",
            "slicewise_controller_gateway_behind{gateway=\"gw\"} 1",
            "# EOF",
        ] {
            assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
        }
        let page = server.ask("GET", "/", &[], None);
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, "text/html; charset=utf-8")
        );
        assert!(
            page.header("content-security-policy")
                .contains("script-src 'self'")
        );
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        let again = server.ask("GET", "/", &[("if-none-match", page.header("etag"))], None);
        assert_eq!(again.status, 304);
        assert_eq!(
            server
                .ask("GET", "/assets/..%2fCargo.toml", &[], None)
                .status,
            404
        );
    });
}

#[test]
fn several_gateways_announce_at_the_same_moment() {
    each_with_link(|_, server, client| {
        std::thread::scope(|scope| {
            for index in 0..8 {
                let client = server.client();
                scope.spawn(move || {
                    let (gateway, link) = (format!("g{index}"), format!("l{index}"));
                    client.announce(&gateway, &announcement(&[&link])).unwrap();
                });
            }
        });
        assert_eq!(client.gateways().unwrap().len(), 9);
    });
}
