//! The transport of a volume.

/// Parses the value of `--transport`. The error for RDMA, which older manuals of GlusterFS describe, explains its
/// state.
pub fn parse(word: &str) -> Result<String, String> {
    match word {
        "tcp" => Ok(word.into()),
        "rdma" | "tcp,rdma" => {
            Err("GlusterFS has no rdma since version 8: its volumes do not start. MooseFS never had \
            it. NFS has it as an option of its mounts (proto=rdma), which homing uses. Over InfiniBand use tcp with \
            the addresses of IPoIB"
                .into())
        }
        _ => Err("the only transport is tcp".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rdma_is_told_as_what_it_is() {
        assert_eq!(parse("tcp").as_deref(), Ok("tcp"));
        assert!(parse("rdma").is_err_and(|why| why.contains("since version 8") && why.contains("proto=rdma")));
        assert!(parse("sctp").is_err());
    }
}
