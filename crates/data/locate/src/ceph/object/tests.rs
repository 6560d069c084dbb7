use super::*;

fn striping(unit: u64, count: u64, object_size: u64) -> Striping {
    Striping { unit, count, object_size, pool: "data".into(), namespace: None }
}

/// Object n is on host n mod 3.
fn placed(striping: &Striping, size: u64) -> FileLayout {
    let mut layout = FileLayout {
        path: "f".into(),
        size,
        volume: "".into(),
        extents: vec![],
        reason: None,
        missing: false,
        server_path: None,
    };
    place(striping, &mut layout, &mut |number, _| Ok(vec![Replica { host: format!("n{}", number % 3), share: 1.0 }]));
    layout
}

fn spans(layout: &FileLayout) -> Vec<(u64, u64, &str)> {
    layout.extents.iter().map(|e| (e.offset, e.length, e.replicas[0].host.as_str())).collect()
}

#[test]
fn an_attribute_says_how_a_file_is_cut() {
    let plain =
        Striping::parse("stripe_unit=65536 stripe_count=3 object_size=4194304 pool=a b pool_namespace=x=y").unwrap();
    assert_eq!((plain.unit, plain.count, plain.object_size), (65536, 3, 4 << 20));
    assert_eq!((plain.pool.as_str(), plain.namespace.as_deref()), ("a b", Some("x=y")));
    for odd in
        ["", "stripe_unit=0 stripe_count=1 object_size=4 pool=a", "stripe_unit=4 stripe_count=1 object_size=6 pool=a"]
    {
        assert_eq!(Striping::parse(odd), None, "{odd}");
    }
}

#[test]
fn whole_objects_follow_each_other() {
    assert_eq!(spans(&placed(&striping(4, 1, 8), 20)), [(0, 8, "n0"), (8, 8, "n1"), (16, 4, "n2")]);
}

#[test]
fn stripes_go_round_a_set_of_objects_until_these_are_full() {
    // Two objects of two units each, then the next two.
    let told = placed(&striping(10, 2, 20), 75);
    let expected = [(0, 10, "n0"), (10, 10, "n1"), (20, 10, "n0"), (30, 10, "n1"), (40, 10, "n2"), (50, 10, "n0")];
    assert_eq!(spans(&told)[..6], expected);
    assert_eq!(spans(&told)[6..], [(60, 10, "n2"), (70, 5, "n0")]);
}

#[test]
fn a_file_of_very_many_pieces_is_told_in_shares() {
    let told = placed(&striping(1, 3, 1000), 3 * PIECES);
    assert_eq!(told.extents.len(), 1, "each three in a row are on the same three hosts");
    assert!(told.extents[0].replicas.iter().all(|replica| (replica.share - 1.0 / 3.0).abs() < 1e-9));
    assert_eq!(told.extents[0].length, told.size);
}

#[test]
fn what_no_osd_has_is_counted_and_what_cannot_be_told_is_no_half_answer() {
    let mut layout = FileLayout { extents: vec![], ..placed(&striping(4, 1, 4), 12) };
    let one = |host: &str| vec![Replica { host: host.into(), share: 1.0 }];
    place(&striping(4, 1, 4), &mut layout, &mut |n, _| Ok(if n == 1 { vec![] } else { one("n1") }));
    assert_eq!(spans(&layout), [(0, 4, "n1"), (8, 4, "n1")]);
    assert!(layout.reason.as_ref().is_some_and(|why| why.contains("has 4 bytes of it")));
    place(&striping(4, 1, 4), &mut layout, &mut |n, _| if n == 1 { Err("refused".into()) } else { Ok(one("n1")) });
    assert_eq!((layout.extents.len(), layout.reason.as_deref()), (0, Some("refused")));
}
