from functools import partial

import numpy as np
import pytest

from generators.base.text import two
from generators.findings import plantings
from generators.findings.outliers import FINDING as OUTLIERS
from generators.findings.outliers import clump
from generators.findings.outliers.clump import crowd_and_clump, crowding, find_clump, scattered_clumps
from generators.tokens.frequency import TokenFrequency
from tests import synthetic

V, D, PLANTED = 3000, 48, 60
vocabulary = partial(synthetic.vocabulary, V)
NOISE = {
    "Gaussian": lambda rng: rng.standard_normal((V, D)),
    "log-normal norms": lambda rng: rng.standard_normal((V, D)) * np.exp(0.5 * rng.standard_normal((V, 1))),
    "Student t": lambda rng: rng.standard_t(3, (V, D)),
    "Student t norms": lambda rng: rng.standard_normal((V, D)) / np.sqrt(rng.chisquare(3, (V, 1)) / 3),
    "power-law spectrum": lambda rng: rng.standard_normal((V, D)) * np.arange(1, D + 1) ** -1.0,
    "power law about a mean": lambda rng: 1 + rng.standard_normal((V, D)) * np.arange(1, D + 1) ** -0.5,
}


def planted(rng, rows, size=PLANTED, spread=0.05):
    """Return rows of which `size` random ones huddle about one spot, nearer to the mean than most; and which."""
    rows = rows.copy()
    ids = np.sort(rng.choice(V, size, replace=False))
    typical = np.linalg.norm(rows - rows.mean(axis=0), axis=1).mean()
    direction = plantings.orthonormal(D, 1, seed=size)[:, 0]
    noise = rng.standard_normal((size, D)) / np.sqrt(D)
    rows[ids] = rows.mean(axis=0) + typical * (0.5 * direction + spread * noise)
    return rows.astype(np.float32), ids


def cloud(seed, clumped=True):
    """Return Gaussian tokens and the ids of those that huddle, or would."""
    rng = np.random.default_rng(seed)
    rows = NOISE["Gaussian"](rng)
    E, ids = planted(rng, rows)
    return E if clumped else rows.astype(np.float32), ids


def compute(E, known=None, frequencies=(), tied=True, **others):
    arch = synthetic.architecture(d_model=D, tied=tied, vocab_size=V)
    return synthetic.measure(OUTLIERS, {"token_embedding": E, **others}, arch, known, frequencies)


def the_claim(result):
    (claim,) = OUTLIERS.claims(result)
    return claim


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", NOISE)
def test_a_planted_clump_is_found_without_any_other_token(kind, seed):
    rng = np.random.default_rng([seed, 1])
    E, ids = planted(rng, NOISE[kind](rng))
    result = compute(E)
    found = result.metrics["clump"]
    assert found["members"] == ids.tolist()
    assert found["size"] == PLANTED
    centre = E[ids].astype(float).mean(axis=0)
    distances = np.linalg.norm(E[ids] - centre, axis=1)
    assert distances.max() <= found["radius"] <= 1.5 * np.median(distances) + 1e-9
    assert found["named_unused"] is result.metrics["in_positions"] is None
    assert (the_claim(result).verdict, the_claim(result).value) == ("partly", PLANTED)  # are they unused?


@pytest.mark.parametrize(("size", "found"), [(9, False), (10, True), (11, True)])
def test_a_clump_has_at_least_ten_tokens(size, found):
    rng = np.random.default_rng(3)
    E = planted(rng, NOISE["Gaussian"](rng), size=size, spread=0.001)[0]
    assert (compute(E).metrics["clump"] is not None) == found


@pytest.mark.parametrize("seed", range(4))
def test_a_clump_that_is_dense_in_the_middle_is_found_whole(seed):
    rng = np.random.default_rng([seed, 9])
    E = NOISE["Gaussian"](rng).astype(np.float32)
    ids = np.sort(rng.choice(V, 100, replace=False))
    away = rng.standard_normal((100, D))
    lengths = 0.002 * np.exp(0.6 * rng.standard_normal(100))
    E[ids] = E[ids[0]] + away / np.linalg.norm(away, axis=1, keepdims=True) * lengths[:, None]
    found = compute(E).metrics["clump"]
    assert found["members"] == ids.tolist()
    assert np.sum(lengths > 1.5 * np.median(lengths)) >= 5


@pytest.mark.parametrize("factor", [1, 0], ids=["equal", "zeros"])
def test_identical_rows_are_a_clump_of_the_smallest_radius(factor):
    rng = np.random.default_rng(5)
    E, ids = planted(rng, NOISE["Gaussian"](rng), spread=0)
    E[ids] *= factor
    result = compute(E)
    assert result.metrics["clump"]["members"] == ids.tolist()
    assert result.metrics["clump"]["radius"] == pytest.approx(result.metrics["typical_distance"] / 100)


@pytest.mark.parametrize("near", [0, 10, 20, 50])
@pytest.mark.parametrize("apart", [1e-6, 0.004, 0.15], ids=["float32", "8 bits", "near"])
def test_rows_that_are_equal_and_others_near_them_are_one_clump(near, apart):
    rng = np.random.default_rng([near, 5])
    E, ids = planted(rng, NOISE["Gaussian"](rng), size=20 + near, spread=0)
    typical = crowding(E).typical
    away = rng.standard_normal((20 + near, D))
    away *= typical * apart / np.linalg.norm(away, axis=1, keepdims=True)
    away[near : near + 10] = 0
    away[near + 10 :] *= 0.004 / max(apart, 0.004)
    E[ids] += away.astype(np.float32)
    assert compute(E).metrics["clump"]["members"] == ids.tolist()


def test_a_crowd_that_thins_out_slowly_and_twins_are_no_clump():
    rng = np.random.default_rng(8)
    rows = NOISE["Gaussian"](rng)
    rows[:400] *= np.linspace(0.02, 0.6, 400)[:, None]
    E = rows.astype(np.float32)
    crowd = crowding(E)
    assert crowd.crowded.any()
    assert find_clump(E, crowd) is None
    twins = compute(np.repeat(rng.standard_normal((V // 2, D)), 2, axis=0).astype(np.float32)).metrics
    assert (twins["typical_distance"], twins["clump"]) == (0, None)


def test_the_clump_of_a_matrix_is_sought_once_and_that_of_another_anew(monkeypatch):
    (E, ids), other = cloud(6), cloud(7, clumped=False)[0]
    sought = []
    monkeypatch.setattr(clump, "_last", {})
    monkeypatch.setattr(clump, "find_clump", lambda *given: sought.append(1) or find_clump(*given))
    assert [crowd_and_clump(rows)[1] is None for rows in (E, E.copy(), other, E)] == [False, False, True, False]
    assert len(sought) == 3
    assert set(crowd_and_clump(E)[1].members) == set(ids)


def test_scale_and_place_of_the_cloud_do_not_matter_and_of_two_clumps_the_larger_counts():
    rng = np.random.default_rng(9)
    E = planted(rng, NOISE["power-law spectrum"](rng), size=20, spread=0.01)[0]
    E, ids = planted(rng, E)
    moved = E + 5 * rng.standard_normal(D).astype(np.float32)
    for changed in (E, E * np.float32(1e-3), E * np.float32(300), moved, E.astype(np.float64)):
        assert compute(changed).metrics["clump"]["members"] == ids.tolist()


def test_short_tokens_huddle_by_their_length_alone():
    rng = np.random.default_rng(31)
    E = NOISE["Gaussian"](rng)
    E[::10] *= 0.02
    result = compute(E.astype(np.float32))
    assert result.metrics["clump"]["size"] == V // 10
    assert result.metrics["chance"]["clump"]["median"] > 10
    assert the_claim(result).verdict == "untested"


@pytest.mark.parametrize(("named", "inside", "verdict", "said"), [
    (30, 25, "holds", "25 of the 30 "), (60, 60, "holds", "All 60 "), (30, 14, "fails", "Only 14 of the 30 "),
    (9, 0, "partly", "0 of the 9 "), (9, 5, "holds", "5 of the 9 "), (0, 0, "partly", "no counts of the training "),
])  # fmt: skip
def test_names_judge_the_clump(named, inside, verdict, said):
    E, ids = cloud(33)
    others = np.setdiff1d(np.arange(V), ids)[: named - inside]
    unused = [*ids[:inside].tolist(), *others.tolist()]
    result = compute(E, vocabulary({i: f"[unused{i}]" for i in unused}))
    assert result.metrics["clump"]["named_unused"] == {"tokens": named, "in_clump": inside}
    reserved = [row["id"] for row in result.tables["members"].named() if row["reserved_name"]]
    assert sorted(reserved) == ids[:inside].tolist()
    claim = the_claim(result)
    assert (claim.chance.median, claim.chance.limit, claim.chance.draws, claim.interval) == (0, 0, 100, None)
    assert claim.verdict == verdict
    assert said in claim.answer
    assert "needed" not in claim.answer, "a cluster has as many tokens as it needs"


def test_how_much_of_the_clump_lies_where_positions_do():
    rng = np.random.default_rng(36)
    E, ids = planted(rng, NOISE["Gaussian"](rng))
    P = rng.standard_normal((100, D)) * 0.01
    P[:, 3] += np.linspace(-1, 1, 100)
    E[ids, 3] += 30
    found = compute(E, position_embedding=P.astype(np.float32)).metrics["in_positions"]
    top = np.linalg.svd(P)[2][:10]
    shares = np.sum((E @ top.T) ** 2, axis=1) / np.sum(E.astype(float) ** 2, axis=1)
    assert (found["k"], found["chance"]) == (10, 10 / D)
    assert found["members"] == pytest.approx(shares[ids].mean(), rel=1e-3)
    assert found["others"] == pytest.approx(np.delete(shares, ids).mean(), rel=1e-3)
    alike = compute(E, position_embedding=np.zeros((100, D)))
    assert alike.metrics["in_positions"] is None, "a table that is all alike has no directions"


def test_the_longest_and_the_shortest():
    rng = np.random.default_rng(12)
    E = NOISE["Gaussian"](rng)
    E[[5, 77, 1234]] *= [[9], [8], [7]]
    E[[6, 78, 1235]] *= [[0.01], [0.02], [0.03]]
    result = compute(E.astype(np.float32))
    rows = result.tables["norms"].named()
    ends = {end: [row["id"] for row in rows if row["end"] == end] for end in ("longest", "shortest")}
    norms = np.linalg.norm(E, axis=1)
    assert (ends["longest"][:3], ends["shortest"][:3]) == ([5, 77, 1234], [6, 78, 1235])
    assert ends["longest"] == np.argsort(-norms)[:20].tolist()
    assert [row["norm"] for row in rows[:20]] == pytest.approx(np.sort(norms)[::-1][:20])
    assert not any(row["in_clump"] for row in rows)
    expected = {"mean": norms.mean(), "min": norms.min(), "max": norms.max()}
    assert result.metrics["norm"] == pytest.approx(expected)
    assert {end: result.metrics["ends"][end]["first"] for end in ends} == {end: ids[:5] for end, ids in ends.items()}


def test_where_the_longest_and_the_shortest_stand():
    E = cloud(37)[0]
    E *= 1 + np.arange(V, dtype=np.float32)[:, None] / 100
    E[:, 7] = np.arange(V)[::-1] / 10
    log_frequency = np.arange(V, 0, -1.0) / 100
    known = (TokenFrequency("counts", "planted", log_frequency, 1.0, False),)
    result = compute(E, vocabulary({0: "<first>"}), known)
    long, short = result.metrics["ends"]["longest"], result.metrics["ends"]["shortest"]
    rows = result.tables["norms"].named()
    assert result.metrics["frequency_channel"] == 7
    assert long["count"] == short["count"] == 20
    for end, listed in ((long, rows[:20]), (short, rows[20:])):
        positions = np.array([row["id"] for row in listed])
        assert end["by_frequency"] == pytest.approx(np.median(V - 1 - positions) / V, abs=1e-3)
        assert end["on_channel"] == pytest.approx(np.median(V - 1 - positions) / V, abs=1e-3)
        assert sum(end["groups"].values()) == 20
    ends = result.tables["channel"].named()
    assert [row["id"] for row in ends[:20]] == list(range(V - 1, V - 21, -1))
    assert [row["id"] for row in ends[20:]] == list(range(20))
    proxy = (TokenFrequency("index", "planted", log_frequency, 1.0, True),)
    assert compute(E, None, proxy).metrics["ends"]["longest"]["by_frequency"] is None


def test_tokens_that_the_sources_name_are_told_where_they_are():
    E, ids = cloud(38)
    E[5] *= 10
    raw_bytes = {5: "BuyableInstoreAndOnline", int(ids[0]): " natureconservancy", 9: "\u00c3\u00c2" * 4, 11: "\u00c3"}
    rows = {row["id"]: row for row in compute(E, vocabulary(raw_bytes)).tables["named"].named()}
    assert set(rows) == {5, int(ids[0]), 9}
    assert rows[5]["place_by_norm"] == 1
    assert rows[int(ids[0])]["in_clump"]
    assert rows[9]["place_on_channel"] is None
    assert "named" not in compute(E, vocabulary({})).tables


def column(result, table, name):
    return result.tables[table].column(name)


def test_tied_candidates_point_to_the_clump():
    rng = np.random.default_rng(13)
    E, ids = planted(rng, NOISE["power law about a mean"](rng))
    result = compute(E)
    centre = E[ids].astype(float).mean(axis=0)
    cosines = E @ centre / np.linalg.norm(E, axis=1) / np.linalg.norm(centre)
    values = column(result, "candidates", "indicator")
    assert values == pytest.approx(np.sort(1 - cosines)[: V // 50], abs=1e-5)
    assert values == sorted(values)
    assert set(column(result, "candidates", "id")) == set(ids.tolist())


def test_without_a_clump_untied_candidates_are_short_and_tied_ones_none():
    E = NOISE["Gaussian"](np.random.default_rng(15)).astype(np.float32)
    tied, result = compute(E), compute(E, tied=False)
    assert "candidates" not in tied.tables
    assert result.metrics["clump"] is None
    assert "by norm of the input embedding" in result.tables["candidates"].title
    shortest = np.argsort(np.linalg.norm(E, axis=1))[: V // 50]
    assert column(result, "candidates", "id") == shortest.tolist()


def test_special_candidates_are_not_listed():
    E, ids = cloud(16)
    texts = {int(ids[3]): "ward", 7: "forward", 9: " awkward"}
    result = compute(E, vocabulary(texts, special=ids[:2].tolist()))
    listed = dict(zip(column(result, "candidates", "id"), column(result, "candidates", "contained_in"), strict=True))
    assert set(listed) == set(ids[2:].tolist())
    assert listed[ids[3]] == ["forward", "␠awkward"]


@pytest.mark.parametrize(("clumped", "unused_members", "unused_others", "member_counts", "verdict"), [
    (True, 60, 0, (), "holds"), (True, 57, 4, (1, 7, 2), "holds"), (True, 58, 0, (1, 1), "holds"),
    (True, 0, 0, (5,) * 60, "partly"), (True, 0, 100, (7,) * 60, "fails"), (False, 0, 3, (), "fails"),
    (False, 0, 0, (), "fails"),
])  # fmt: skip
def test_counts_judge_the_clump_before_names_do(clumped, unused_members, unused_others, member_counts, verdict):
    E, ids = cloud(23, clumped)
    unused = np.sort([*ids[:unused_members], *np.setdiff1d(np.arange(V), ids)[:unused_others]]).astype(int)
    counts = np.random.default_rng(20).integers(100, 10**9, V)
    counts[unused] = 0
    counts[ids[unused_members : unused_members + len(member_counts)]] = member_counts
    known = (TokenFrequency("counts", "planted", np.log1p(counts), 1.0, False),)
    result = compute(E, vocabulary({1: "[unused1]"}), known)
    assert result.metrics["known_unused"] == {
        "count": len(unused),
        "in_clump": unused_members,
        "largest_count_in_clump": max(member_counts, default=0) if clumped else None,
    }
    assert ("known_unused" in result.tables) == bool(len(unused))
    if len(unused):
        assert column(result, "known_unused", "id") == unused.tolist()
        assert column(result, "known_unused", "in_clump") == (np.isin(unused, ids) & clumped).tolist()
    if clumped:
        assert result.metrics["clump"]["members"] == ids.tolist(), "found without reading counts or names"
        assert column(result, "candidates", "count") == counts[column(result, "candidates", "id")].tolist()
    assert the_claim(result).verdict == verdict


@pytest.mark.parametrize("clumped", [True, False])
def test_what_the_pictures_show_is_told(clumped):
    E, ids = cloud(25, clumped)
    alt, norms = synthetic.alts(OUTLIERS, compute(E))["outlier-norms"], np.linalg.norm(E, axis=1)
    said = [two(norms.min()), two(norms.mean())]
    if clumped:
        said += [two(norms[ids].min()), two(norms[ids].max()), "60 tokens"]
    assert [number for number in said if number not in alt] == []


def test_tokens_that_are_all_alike_have_no_clump_by_chance():
    assert scattered_clumps(np.ones((200, 8), np.float32))["median"] == 0
