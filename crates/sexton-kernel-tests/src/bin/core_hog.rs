//! Holds a core, or sends packets, for a known time.
//!
//! `core_hog hold MS` stays in the kernel: it reads from `/dev/zero`.
//! `core_hog send ADDRESS MS` sends a packet every millisecond.

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["hold", ms] => hold(time(ms)?),
        ["send", address, ms] => send(address, time(ms)?),
        _ => bail!("core_hog hold MS | core_hog send ADDRESS MS"),
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

fn send(address: &str, time: Duration) -> Result<()> {
    const DISCARD: u16 = 9;
    let until = Instant::now() + time;
    let socket = UdpSocket::bind("0.0.0.0:0").context("cannot open a socket")?;
    while Instant::now() < until {
        // A full queue loses packets; the next one is as good.
        let _ = socket.send_to(b"sexton", (address, DISCARD));
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
