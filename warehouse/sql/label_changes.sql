-- Which queries have another forensic label under another configuration?
--
-- For every two measured configurations of a corpus: how many queries go from one label to another,
-- at k = 8 on both sides (labels of different k are never compared), and which. Rows with OK or OVR
-- behind the arrow are won, rows with them before it are lost. same_chunks is false where the two
-- search other chunks: the same k is then another amount of text. Rankings that are less than 8 deep
-- have no label at 8, and no row.
WITH pairs AS (
    SELECT
        a.corpus,
        a.config AS from_config,
        b.config AS to_config,
        a.chunker = b.chunker AS same_chunks
    FROM configs AS a
    JOIN configs AS b ON b.corpus = a.corpus AND b.config <> a.config
)
SELECT
    p.corpus,
    p.from_config,
    p.to_config,
    p.same_chunks,
    f.label AS from_label,
    t.label AS to_label,
    count(*) AS n_queries,
    list(f.query_id ORDER BY f.query_id) AS queries
FROM pairs AS p
JOIN forensic_labels AS f ON f.corpus = p.corpus AND f.config = p.from_config AND f.k = 8
JOIN forensic_labels AS t
    ON t.corpus = p.corpus AND t.config = p.to_config AND t.k = 8 AND t.query_id = f.query_id
WHERE f.label IS DISTINCT FROM t.label
GROUP BY ALL
ORDER BY p.corpus, p.from_config, p.to_config, n_queries DESC, from_label, to_label;
