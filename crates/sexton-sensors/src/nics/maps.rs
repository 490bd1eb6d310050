//! Which CPUs a device's interrupts and queues go to.

use std::path::Path;

use sexton_host::{Host, HostError};
use sexton_model::fact::nic::{self as fact, NicInterrupt, NicQueueCpus};
use sexton_model::gap::Why;
use sexton_model::record::Sink;

use super::counters::queue_subject;
use super::device::Device;
use super::files;
use super::teller::Teller;

/// More interrupts of one device than this are not looked at.
const MAX_INTERRUPTS: usize = 1_024;

/// Tells where each interrupt of a device goes. `interrupts` is `/proc/interrupts`.
pub(super) fn look_at_interrupts(
    host: &Host,
    device: &Device,
    interrupts: &str,
    teller: &mut Teller,
    out: &mut Sink,
) {
    for irq in interrupts_of(host, &device.folder) {
        let cpus = |file: &str| -> Result<String, HostError> {
            files::word(host, &host.proc(&format!("irq/{irq}/{file}"))?)
        };
        let allowed = match cpus("smp_affinity_list") {
            Ok(allowed) => allowed,
            // It was freed since it was listed.
            Err(error) if error.why() == Why::Vanished => continue,
            Err(error) => {
                teller.failed(out, &device.subject, &error);
                continue;
            }
        };
        let interrupt = NicInterrupt {
            irq,
            name: files::interrupt_name(interrupts, irq),
            allowed_cpus: Some(allowed),
            effective_cpus: cpus("effective_affinity_list").ok(),
        };
        let key = irq.to_string();
        teller.state(out, &device.subject, &fact::NIC_INTERRUPT, &key, interrupt);
    }
}

/// The interrupts of the device behind an interface. Behind a virtio device lies the one
/// on the bus that has them. A virtual device has none.
fn interrupts_of(host: &Host, folder: &Path) -> Vec<u32> {
    for below in ["device/msi_irqs", "device/../msi_irqs"] {
        if let Ok(entries) = host.list(folder.join(below)) {
            let numbers = entries
                .iter()
                .filter_map(|entry| entry.name.to_str()?.parse().ok());
            return numbers.take(MAX_INTERRUPTS).collect();
        }
    }
    let pin = files::number(host, &folder.join("device/irq"));
    let pin = pin.ok().and_then(|irq| u32::try_from(irq).ok());
    pin.into_iter().filter(|irq| *irq > 0).collect()
}

/// Tells which CPUs use each queue of a device.
pub(super) fn look_at_queues(host: &Host, device: &Device, teller: &mut Teller, out: &mut Sink) {
    let folder = device.folder.join("queues");
    for queue in host.list(&folder).unwrap_or_default() {
        let Some(name) = queue.name.to_str() else {
            continue;
        };
        let sends = name.starts_with("tx-");
        let file = if sends { "xps_cpus" } else { "rps_cpus" };
        let subject = queue_subject(&device.name, name);
        let path = folder.join(name).join(file);
        match host.read_text(&path) {
            Ok(mask) => match files::list_of_mask(&mask) {
                Some(cpus) => {
                    let (xps_cpus, rps_cpus) = match sends {
                        true => (Some(cpus), None),
                        false => (None, Some(cpus)),
                    };
                    let cpus = NicQueueCpus { xps_cpus, rps_cpus };
                    teller.state(out, &subject, &fact::NIC_QUEUE_CPUS, "", cpus);
                }
                None => teller.failed(
                    out,
                    &subject,
                    &HostError::Malformed {
                        path,
                        what: "it is no mask of CPUs".into(),
                    },
                ),
            },
            // The kernel says so of a device with one queue, which every CPU uses.
            Err(error) if error.why() == Why::Vanished => (),
            Err(error) => teller.failed(out, &subject, &error),
        }
    }
}
