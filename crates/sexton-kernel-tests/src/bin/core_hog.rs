//! Holds a core, or sends packets, for a known time.
//!
//! `core_hog hold MS` stays in the kernel: it reads from `/dev/zero`.
//! `core_hog spin MS` stays out of it.
//! `core_hog read FILE MS` reads a file from its beginning, over and over.
//! `core_hog send ADDRESS MS` sends a packet every millisecond,
//! `core_hog flood ADDRESS MS` one after the other.

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["hold", ms] => hold(time(ms)?),
        ["spin", ms] => spin(time(ms)?),
        ["read", path, ms] => read(path, time(ms)?),
        ["send", address, ms] => send(address, time(ms)?, Duration::from_millis(1)),
        ["flood", address, ms] => send(address, time(ms)?, Duration::ZERO),
        _ => {
            bail!("core_hog hold MS | spin MS | read FILE MS | send ADDRESS MS | flood ADDRESS MS")
        }
    }
}

fn time(ms: &str) -> Result<Duration> {
    let ms = ms.parse().with_context(|| format!("{ms} is no number"))?;
    Ok(Duration::from_millis(ms))
}

fn hold(time: Duration) -> Result<()> {
    let until = Instant::now() + time;
    let mut zeros = File::open("/dev/zero").context("cannot open /dev/zero")?;
    let mut buffer = vec![1; 1 << 20];
    while Instant::now() < until {
        zeros
            .read_exact(&mut buffer)
            .context("cannot read /dev/zero")?;
    }
    Ok(())
}

fn spin(time: Duration) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    Ok(())
}

fn read(path: &str, time: Duration) -> Result<()> {
    let until = Instant::now() + time;
    let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
    let mut buffer = vec![0; 1 << 16];
    while Instant::now() < until {
        file.read_at(&mut buffer, 0)
            .with_context(|| format!("cannot read {path}"))?;
    }
    Ok(())
}

fn send(address: &str, time: Duration, pause: Duration) -> Result<()> {
    const DISCARD: u16 = 9;
    let until = Instant::now() + time;
    let socket = UdpSocket::bind("0.0.0.0:0").context("cannot open a socket")?;
    while Instant::now() < until {
        // A full queue loses packets; the next one is as good.
        let _ = socket.send_to(b"sexton", (address, DISCARD));
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
    Ok(())
}
