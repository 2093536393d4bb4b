-- Which gold spans were lost, and which stage of the pipeline lost each of them?
--
-- One row for each gold span that the top 8 chunks do not cover (less than half of it), with the first
-- stage that did not keep it: corpus, chunking, routing, candidates, fusion, reranking or cut. For how
-- many each stage lost, count by config and lost_stage; for another depth, change k.
-- Rankings that are less than 8 deep have no row at 8, whatever they lost.
SELECT
    s.corpus,
    s.config,
    s.lost_stage,
    s.query_id,
    q.subset,
    s.span_no,
    s.state,
    s.covered_chars / (g.end_char - g.start_char) AS covered_share,
    s.severed,
    g.doc_id,
    g.start_char,
    g.end_char,
    q.query,
    g.text AS lost_text
FROM span_states AS s
JOIN queries AS q ON q.corpus = s.corpus AND q.query_id = s.query_id
JOIN gold_spans AS g
    ON g.corpus = s.corpus AND g.query_id = s.query_id AND g.span_no = s.span_no
WHERE s.k = 8 AND s.state <> 'covered'
ORDER BY s.corpus, s.config, s.lost_stage, s.query_id, s.span_no;
