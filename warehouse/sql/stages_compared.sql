-- How many gold spans did each stage lose, at each depth?
--
-- One row for each configuration, depth and stage that lost any. `share` is of all gold spans of the
-- corpus; the counts of one configuration and depth sum to the spans that are not covered there.
WITH total AS (
    SELECT corpus, config, k, count(*) AS gold_spans FROM span_states GROUP BY ALL
)
SELECT
    s.corpus,
    s.config,
    s.k,
    s.lost_stage,
    count(*) AS lost_spans,
    count(*) / t.gold_spans AS share,
    count(*) FILTER (s.severed) AS severed_spans
FROM span_states AS s
JOIN total AS t ON t.corpus = s.corpus AND t.config = s.config AND t.k = s.k
WHERE s.state <> 'covered'
GROUP BY s.corpus, s.config, s.k, s.lost_stage, t.gold_spans
ORDER BY s.corpus, s.config, s.k, lost_spans DESC, s.lost_stage;
