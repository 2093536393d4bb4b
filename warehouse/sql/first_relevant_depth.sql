-- How deep does a reader go before the first relevant chunk?
--
-- Queries of each configuration by the rank of their first relevant chunk (1 / mrr). Many queries in
-- at_6_to_10 and below_10 are work for a reranker; those not_in_the_list are beyond its reach. A list
-- ends at the experiment's depth: what stands below that is not in it.
WITH ranked AS (
    SELECT corpus, config, query_id, CAST(round(1 / nullif(value, 0)) AS BIGINT) AS first_rank
    FROM query_metrics
    WHERE metric = 'mrr'
)
SELECT
    corpus,
    config,
    count(*) FILTER (first_rank = 1) AS at_rank_1,
    count(*) FILTER (first_rank BETWEEN 2 AND 5) AS at_2_to_5,
    count(*) FILTER (first_rank BETWEEN 6 AND 10) AS at_6_to_10,
    count(*) FILTER (first_rank > 10) AS below_10,
    count(*) FILTER (first_rank IS NULL) AS not_in_the_list,
    median(first_rank) AS median_rank_where_found
FROM ranked
GROUP BY corpus, config
ORDER BY corpus, config;
