//! `/proc/net/softnet_stat` and `/proc/net/netstat`.

/// Dropped and squeezed, summed over all cores: the second and third column of each line, in
/// hexadecimal, see Documentation/networking/scaling.rst and net/core/net-procfs.c.
pub(super) fn softnet(text: &str) -> Option<(u64, u64)> {
    let (mut dropped, mut squeezed) = (0_u64, 0_u64);
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let mut number = || u64::from_str_radix(fields.next()?, 16).ok();
        dropped = dropped.saturating_add(number()?);
        squeezed = squeezed.saturating_add(number()?);
    }
    (!text.is_empty()).then_some((dropped, squeezed))
}

/// A counter of `TcpExt`: a line of names, and one of values.
pub(super) fn netstat(text: &str, name: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("TcpExt: "));
    let names = lines.next()?.split_ascii_whitespace();
    let values = lines.next()?.split_ascii_whitespace();
    let (_, value) = names.zip(values).find(|(known, _)| *known == name)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_summed_up() {
        let text = "0000ffff 0000000a 00000001 00000000\n00000001 00000010 00000002 00000000\n";
        assert_eq!(softnet(text), Some((26, 3)));
        assert_eq!(softnet("00000001\n"), None);
        assert_eq!(softnet("1 g 2\n"), None);
        assert_eq!(softnet(""), None);
    }

    #[test]
    fn counters_by_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 33\n\
                    IpExt: InNoRoutes\nIpExt: 4\n";
        assert_eq!(netstat(text, "ListenOverflows"), Some(22));
        assert_eq!(netstat(text, "ListenDrops"), Some(33));
        assert_eq!(netstat(text, "InNoRoutes"), None);
        assert_eq!(netstat("TcpExt: A\n", "A"), None);
    }
}
