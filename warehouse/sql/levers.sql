-- What did changing one lever, and nothing else, do?
--
-- One row for each two measured configurations that differ in exactly one lever. `delta` is the change
-- in complete_grounding@5 from the first to the second; a negative one made things worse. `fixed` and
-- `broken` count the queries behind it, and a small delta can hide many of both.
SELECT
    corpus,
    lever,
    from_config,
    to_config,
    delta,
    fixed,
    broken,
    promoted AS relevant_chunks_promoted,
    fixed_queries,
    broken_queries
FROM config_pairs
ORDER BY corpus, lever, delta DESC, from_config, to_config;
