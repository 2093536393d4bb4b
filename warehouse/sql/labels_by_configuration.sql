-- What do the failures of each configuration have in common?
--
-- Failing queries by label, the most frequent first, with the share of all queries that they are. A
-- label attributes a failure to the first cause that holds; it does not prove that changing the lever
-- would mend it. See levers.sql for what changing a lever did.
WITH asked AS (
    SELECT corpus, count(*) AS n_queries FROM queries GROUP BY corpus
)
SELECT
    f.corpus,
    f.config,
    f.label,
    f.lever,
    count(*) AS failing_queries,
    count(*) / a.n_queries AS share_of_queries
FROM failure_labels AS f
JOIN asked AS a ON a.corpus = f.corpus
GROUP BY f.corpus, f.config, f.label, f.lever, a.n_queries
ORDER BY f.corpus, f.config, failing_queries DESC, f.label;
