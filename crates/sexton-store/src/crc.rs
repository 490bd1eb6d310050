//! CRC-32C (Castagnoli), as in iSCSI, ext4 and btrfs. It finds every change that
//! spans up to 32 bits, so no single byte can change unnoticed.

const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Bytes that are taken at once.
const STEP: usize = 8;

/// What a byte does to the checksum, when so many others of a step follow it.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    tables[0] = table();
    let mut after = 1;
    while after < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[after - 1][byte];
            tables[after][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The checksum of bytes that follow those of `crc`; 0 to begin.
pub(crate) fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let crc = steps.iter().fold(!crc, |crc, step| {
        let mixed = u64::from_le_bytes(*step) ^ u64::from(crc);
        let parts = mixed.to_le_bytes().into_iter().zip(TABLES.iter().rev());
        parts.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)])
    });
    !rest.iter().fold(crc, |crc, byte| {
        (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(crc32c(0, b"12345"), b"6789"), 0xe306_9283);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(0, &ascending), 0x46dd_794e);
    }
}
