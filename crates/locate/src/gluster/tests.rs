use super::*;

const VOLFILE: &str = "volume data-client-0
    type protocol/client
    option remote-subvolume /scratch/brick
    option remote-host n1
end-volume
volume data-client-1
    type protocol/client
    option remote-subvolume /scratch/brick
    option remote-host n2
end-volume
volume data-client-2
    type protocol/client
    option remote-subvolume /scratch/brick
    option remote-host n3
end-volume
volume data-client-3
    type protocol/client
    option remote-subvolume /scratch/brick
    option remote-host n4
end-volume
volume data-replicate-0
    type cluster/replicate
    subvolumes data-client-0 data-client-1
end-volume
volume data-replicate-1
    type cluster/replicate
    ARBITER
    subvolumes data-client-2 data-client-3
end-volume
volume data-dht
    type cluster/distribute
    subvolumes data-replicate-0 data-replicate-1
end-volume
";

fn gluster(arbiter: &str) -> Gluster {
    let definition = volfile::parse(&VOLFILE.replace("ARBITER", arbiter)).ok_or_else(String::new);
    Gluster { definition, same: Mutex::default() }
}

fn hosts(gluster: &Gluster, value: &str) -> Result<Vec<String>, String> {
    let definition = gluster.definition.as_ref().unwrap();
    let extent = gluster.place(definition, value.as_bytes(), 10)?;
    Ok(extent.replicas.into_iter().map(|r| r.host).collect())
}

#[test]
fn replicas_of_the_named_subvolume() {
    let value = "(<DISTRIBUTE:data-dht> (<REPLICATE:data-replicate-1> <POSIX(/scratch/brick):n4:/scratch/brick/p/f4> \
                 <POSIX(/scratch/brick):n3:/scratch/brick/p/f4>))";
    assert_eq!(hosts(&gluster(""), value).unwrap(), ["n3", "n4"]);
    let down = "(<DISTRIBUTE:data-dht> (<REPLICATE:data-replicate-1> <POSIX(/scratch/brick):n4:/scratch/brick/f>))";
    assert_eq!(hosts(&gluster(""), down).unwrap(), ["n4"], "a brick that is down is not named");
    assert_eq!(hosts(&gluster("option arbiter-count 1"), value).unwrap(), ["n3"], "an arbiter holds nothing");
    assert!(hosts(&gluster("option arbiter-count 1"), down).is_err());
}

#[test]
fn a_file_name_never_becomes_a_host() {
    let evil = "x> <POSIX(/scratch/brick):evil:/> <POSIX(/scratch/brick):n1:/y\n>))(<REPLICATE:data-replicate-0> ";
    let value = format!(
        "(<DISTRIBUTE:data-dht> (<REPLICATE:data-replicate-1> <POSIX(/scratch/brick):n4:/scratch/brick/{evil}>))"
    );
    assert_eq!(hosts(&gluster(""), &value).unwrap(), ["n4"]);
}

#[test]
fn distribute_alone_and_disperse() {
    let only = VOLFILE.split("volume data-replicate-0").next().unwrap();
    let plain = Gluster { definition: volfile::parse(only).ok_or_else(String::new), same: Mutex::default() };
    let value = "(<DISTRIBUTE:data-dht> <POSIX(/scratch/brick):n2:/scratch/brick/a <POSIX(/scratch/brick):n1:b>)";
    assert_eq!(hosts(&plain, value).unwrap(), ["n2"]);
    let text = format!(
        "{only}volume data-disperse-0\n type cluster/disperse\n option redundancy 1\n \
         subvolumes data-client-0 data-client-1 data-client-2\nend-volume\n"
    )
    .replace("remote-subvolume /scratch/brick\n    option remote-host n4", "remote-subvolume snap");
    let extent = dispersed(&volfile::parse(&text).unwrap(), 100).unwrap();
    assert_eq!(extent.replicas.len(), 3);
    assert_eq!(extent.replicas[0].share, 0.5);
}
