//! The network between a gateway and its controller loses every packet without a word, for longer than either waits. Real
//! packets between network namespaces, TLS and a token, and traffic all the time. Needs root, iproute2, iperf3 and openssl; says
//! so and passes where they are missing.

use super::{Running, lost_percent, run, slice, wait_until};
use crate::support::{Sandbox, is_installed};
use serde_json::json;
use slicewise_api::{Client, ClientParams, EventKind, Precondition, SliceQuery, SliceState};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A hardware address that nobody has.
const NOBODY: &str = "02:00:00:00:00:99";
/// The port of the controller, on an address of its own.
const PORT: u16 = 9650;

/// Namespaces of a sender, a receiver and the gateway between them, and an interface here that leads to the gateway.
struct Network {
    id: u32,
    sandbox: Sandbox,
}

impl Network {
    fn new() -> Option<Self> {
        for program in ["ip", "ethtool", "iperf3", "openssl"] {
            if !is_installed(program) {
                println!("skipped: {program} is not installed");
                return None;
            }
        }
        let id = std::process::id() % 30_000;
        let network = Self {
            id,
            sandbox: Sandbox::new(),
        };
        match network.build() {
            Ok(()) => Some(network),
            Err(reason) => {
                println!("skipped: network namespaces cannot be made here: {reason}");
                None
            }
        }
    }

    fn space(&self, of: &str) -> String {
        format!("swp{of}{}", self.id)
    }

    /// The address of the controller, and of the gateway on the way to it: of the network for measurements (RFC 2544).
    fn address(&self, of: u32) -> String {
        let host = self.id * 4 + of;
        format!(
            "198.{}.{}.{}",
            18 + (host >> 16),
            (host >> 8) & 255,
            host & 255
        )
    }

    fn build(&self) -> Result<(), String> {
        let (gateway, here) = (self.space("g"), self.space("c"));
        run(&format!("ip netns add {gateway}"))?;
        for (end, interface, address) in [("s", "left", 1), ("r", "right", 2)] {
            let end = self.space(end);
            run(&format!("ip netns add {end}"))?;
            run(&format!(
                "ip link add {interface} netns {gateway} type veth peer name eth0 netns {end}"
            ))?;
            run(&format!(
                "ip -n {gateway} link set {interface} addrgenmode none up"
            ))?;
            run(&format!(
                "ip -n {end} addr add 192.0.2.{address}/24 dev eth0"
            ))?;
            run(&format!("ip -n {end} link set eth0 up"))?;
            run(&format!("ip -n {end} link set lo up"))?;
            run(&format!(
                "ip netns exec {end} ethtool -K eth0 tx off tso off gso off gro off"
            ))?;
        }
        run(&format!(
            "ip link add {here} type veth peer name control netns {gateway}"
        ))?;
        run(&format!("ip addr add {}/30 dev {here}", self.address(1)))?;
        run(&format!("ip link set {here} up"))?;
        run(&format!("ip -n {gateway} link set lo up"))?;
        run(&format!(
            "ip -n {gateway} addr add {}/30 dev control",
            self.address(2)
        ))?;
        run(&format!("ip -n {gateway} link set control up"))
    }

    /// Each end sends to nobody from now on, and is not told.
    fn cut(&self) {
        let (gateway, here) = (self.space("g"), self.space("c"));
        let to = |address: String, interface: &str| {
            format!("neigh replace {address} lladdr {NOBODY} dev {interface} nud permanent")
        };
        run(&format!("ip {}", to(self.address(2), &here))).unwrap();
        run(&format!(
            "ip -n {gateway} {}",
            to(self.address(1), "control")
        ))
        .unwrap();
    }

    fn mend(&self) {
        let (gateway, here) = (self.space("g"), self.space("c"));
        let (controller, edge) = (self.address(1), self.address(2));
        run(&format!("ip neigh del {edge} dev {here}")).unwrap();
        run(&format!(
            "ip -n {gateway} neigh del {controller} dev control"
        ))
        .unwrap();
    }

    /// A program in a namespace.
    fn within(&self, space: &str, program: &str, arguments: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(space), program]);
        command.args(arguments.split_whitespace());
        command.current_dir(self.sandbox.path(""));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    fn log(&self, name: &str) -> File {
        let mut options = File::options();
        let options = options.append(true).create(true);
        options.open(self.sandbox.path(name)).unwrap()
    }

    fn controller(&self) -> Running {
        let listen = format!("{}:{PORT}", self.address(1));
        let mut command = self.sandbox.command(&[
            "controller",
            "--store",
            "sqlite:store.sqlite",
            "--listen",
            &listen,
            "--tls-certificate",
            "certificate.pem",
            "--tls-key",
            "key.pem",
        ]);
        command
            .stdout(Stdio::null())
            .stderr(self.log("controller.log"));
        Running(command.spawn().unwrap())
    }

    fn gateway(&self) -> Running {
        self.sandbox.write(
            "gateway.yaml",
            format!(
                "interfaces: [left, right]\nlink: 20 Mbit/s\npolicy: {{discipline: guaranteed, classes: []}}\n\
                 metrics_port: 0\ncontroller:\n  url: https://{}:{PORT}\n  name: edge\n  link: uplink\n  state: edge.state\n  \
                 token_file: gateway.token\n  certificate_authority: certificate.pem\n",
                self.address(1)
            ),
        );
        let mut command = self.within("g", env!("CARGO_BIN_EXE_slicewise"), "gateway gateway.yaml");
        command
            .stdout(Stdio::null())
            .stderr(self.log("gateway.log"));
        Running(command.spawn().unwrap())
    }

    fn token(&self, scope: &str) -> String {
        let store = "sqlite:store.sqlite";
        let name = scope.replace(':', "-");
        let (output, _) = self.sandbox.succeeded(&[
            "controller",
            "token",
            "add",
            &name,
            "--scope",
            scope,
            "--store",
            store,
        ]);
        output.trim().to_owned()
    }

    fn wait_until(&self, what: &str, is_so: impl FnMut() -> bool) {
        wait_until(&self.sandbox, what, is_so);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = run(&format!("ip link del {}", self.space("c")));
        for space in ["s", "r", "g"] {
            let _ = run(&format!("ip netns del {}", self.space(space)));
        }
    }
}

fn states(client: &Client) -> Vec<(String, SliceState)> {
    let page = client.slices(&SliceQuery::default()).unwrap();
    let states = page
        .items
        .into_iter()
        .map(|one| (one.slice.name, one.state));
    states.collect()
}

#[test]
fn a_gateway_that_is_cut_off_forwards_on_and_both_converge_afterwards() {
    let Some(network) = Network::new() else {
        return;
    };
    network.sandbox.certify(&network.address(1));
    let (admin, edge) = (network.token("admin"), network.token("gateway:edge"));
    network.sandbox.write("gateway.token", edge);
    let _controller = network.controller();
    let _gateway = network.gateway();
    let client = Client::new(&ClientParams {
        url: format!("https://{}:{PORT}", network.address(1)),
        token: Some(admin),
        authorities: Some(network.sandbox.path("certificate.pem")),
    });
    let client = client.unwrap();
    network.wait_until("the link is announced", || {
        client.links().is_ok_and(|links| !links.is_empty())
    });
    let guarantee = json!({"rate_bps": 3_000_000, "burst_bytes": 10_000, "delay_ns": 50_000_000});
    let put = |name: &str, port: u16| {
        let slice = slice(name, port, Some(guarantee.clone()));
        client.put_slice(&slice, Precondition::None, None).unwrap()
    };
    put("held", 5201);
    put("old", 5300);
    let all_are = |expected: &[(&str, SliceState)]| {
        let expected = expected
            .iter()
            .map(|(name, state)| ((*name).to_owned(), *state));
        states(&client).into_iter().eq(expected)
    };
    network.wait_until("both are installed", || {
        all_are(&[
            ("held", SliceState::Installed),
            ("old", SliceState::Installed),
        ])
    });
    let mut server = network.within("r", "iperf3", "-s -p 5201");
    let _server = Running(server.stdout(Stdio::null()).spawn().unwrap());
    let send = |seconds: u32| {
        let arguments = format!("-c 192.0.2.2 -p 5201 -u -b 2M -l 1000 -t {seconds} -J");
        network.within("s", "iperf3", &arguments).spawn().unwrap()
    };
    network.wait_until("iperf3 listens", || {
        send(1).wait_with_output().unwrap().status.success()
    });
    let sending = send(45);
    network.cut();
    put("new", 5301);
    client
        .remove_slice("old", Precondition::None, None)
        .unwrap();
    network.wait_until("it is away", || !client.gateways().unwrap()[0].connected);
    network.wait_until("the gateway knows", || {
        network
            .sandbox
            .read("gateway.log")
            .contains("controller_away")
    });
    // Long enough for connections that are made anew to fail, too.
    std::thread::sleep(Duration::from_secs(12));
    assert!(all_are(&[
        ("held", SliceState::Installed),
        ("new", SliceState::Admitted),
        ("old", SliceState::Draining)
    ]));
    network.mend();
    let mended = Instant::now();
    network.wait_until("both have converged", || {
        all_are(&[
            ("held", SliceState::Installed),
            ("new", SliceState::Installed),
        ])
    });
    println!(
        "converged {:.1} s after the cut was mended",
        mended.elapsed().as_secs_f64()
    );
    let kinds = |kind| {
        let events = client.events(0, None).unwrap().items;
        events.iter().filter(|event| event.kind == kind).count()
    };
    assert_eq!(kinds(EventKind::GatewayWent), 1);
    network.wait_until("it is there", || client.gateways().unwrap()[0].connected);
    assert_eq!(
        kinds(EventKind::GatewayCame),
        2,
        "at first, and after the cut"
    );
    let lost = lost_percent(&sending.wait_with_output().unwrap().stdout);
    println!("lost: {lost} %");
    assert!(lost < 1.0, "{lost} %");
}
