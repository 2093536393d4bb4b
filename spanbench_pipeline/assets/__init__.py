"""The pipeline as Dagster assets: one thin module a stage, with the checks that guard it."""
