//! `slicewise gateway`: forward real packets, sliced as a configuration says.

use crate::Failure;
use crate::arguments::GatewayOptions;
use crate::check::mistakes;
use crate::exit::Exit;
use slicewise_live::DirectionParams;
use slicewise_live::gateway::{self, Conduct, GatewayError, GatewayParams, OpenError, PacketIo};
use slicewise_study::{GatewayConfig, GatewayPacketIo};

/// Seed of random early detection: which packets it picks need not be unforeseeable.
const SEED: u64 = 1;

pub fn gateway(options: &GatewayOptions) -> Result<Exit, Failure> {
    let load = || {
        GatewayConfig::load(&options.config)
            .map(params)
            .map_err(|wrong| mistakes(&wrong, &options.config))
    };
    let params = load()?;
    if options.check {
        let [first, second] = &params.interfaces;
        println!(
            "{}: {first} and {second}: nothing is wrong",
            options.config.display()
        );
        return Ok(Exit::Success);
    }
    let conduct = Conduct {
        busy_poll: options.busy_poll,
    };
    let mut reload = || load().map_err(|failure| failure.to_string());
    match gateway::run(&params, conduct, &mut reload) {
        Ok(_) => Ok(Exit::Success),
        Err(error) if is_mistake(&error) => Err(Failure::mistake(error)),
        Err(error) => Err(Failure::system(error)),
    }
}

fn params(config: GatewayConfig) -> GatewayParams {
    GatewayParams {
        interfaces: config.interfaces,
        directions: config.directions.map(|direction| DirectionParams {
            link: direction.link,
            policy: direction.policy,
            seed: SEED,
        }),
        packet_io: match config.packet_io {
            GatewayPacketIo::Auto => PacketIo::Auto,
            GatewayPacketIo::AfXdp => PacketIo::AfXdp,
            GatewayPacketIo::AfPacket => PacketIo::AfPacket,
        },
        memory_bytes: config.memory.bytes(),
        metrics_port: config.metrics_port,
    }
}

/// Whether the user can mend it.
const fn is_mistake(error: &GatewayError) -> bool {
    match error {
        GatewayError::Open(OpenError::Failed { .. }) | GatewayError::System { .. } => false,
        GatewayError::OneInterface(_)
        | GatewayError::Open(_)
        | GatewayError::Engine(_)
        | GatewayError::Metrics { .. } => true,
    }
}
