-- How much recall does each configuration buy for 1,000 characters retrieved?
--
-- One row for each configuration, part of the corpus (null: the whole) and depth. A recall without its
-- budget says nothing: long chunks recall more at the same k because they are more text. Compare
-- configurations where chars_retrieved is about the same, or by recall_per_1000_chars. Null: nothing
-- was retrieved.
WITH means AS (
    SELECT
        corpus,
        config,
        subset,
        k,
        max(value) FILTER (metric = 'chars_retrieved') AS chars_retrieved,
        max(value) FILTER (metric = 'char_recall_union') AS recall_union,
        max(value) FILTER (metric = 'char_precision_union') AS precision_union,
        max(value) FILTER (metric = 'char_recall_paper') AS recall_paper,
        max(value) FILTER (metric = 'char_precision_paper') AS precision_paper
    FROM config_metrics
    WHERE metric LIKE 'char%'
    GROUP BY ALL
)
SELECT
    corpus,
    config,
    subset,
    k,
    chars_retrieved,
    recall_union,
    1000 * recall_union / nullif(chars_retrieved, 0) AS recall_per_1000_chars,
    precision_union,
    recall_paper,
    precision_paper
FROM means
ORDER BY corpus, subset NULLS FIRST, k, recall_per_1000_chars DESC NULLS LAST, config;
