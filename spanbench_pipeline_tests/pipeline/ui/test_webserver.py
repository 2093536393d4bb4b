"""The web server's process: what it takes from Dagster's insides is as it was.

A failure here is an upgrade's: compare ``dagster_webserver.cli`` with ``webserver.main``, and each
new route with the guard's rules, before the expected values are changed.
"""

from __future__ import annotations

import hashlib
import inspect

from dagster_webserver import cli as dagsters
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.webserver import DagsterWebserver
from starlette.routing import Mount

from spanbench_pipeline.core import guard
from spanbench_pipeline.pipeline.ui import webserver

MADE_FROM = {
    "dagster_webserver": "8ee94f3a94ac05d5",
    "host_dagster_ui_with_workspace_process_context": "a555cd0aa4e7feca",
    "_lifespan": "49d2247fde9b1248",
}
ROUTES = {
    "/",
    "/dagit/notebook",
    "/dagit_info",
    "/download_debug/{run_id:str}",
    "/graphql",
    "/logs/{path:path}",
    "/notebook",
    "/report_asset_check/{asset_key:path}",
    "/report_asset_materialization/{asset_key:path}",
    "/report_asset_observation/{asset_key:path}",
    "/server_info",
    "/{path:path}",
}


def test_dagsters_own_start_is_the_one_that_ours_was_made_from():
    found = {}
    for name in MADE_FROM:
        made = getattr(dagsters, name)
        source = inspect.getsource(getattr(made, "callback", made))
        found[name] = hashlib.sha256(source.encode()).hexdigest()[:16]
    assert found == MADE_FROM
    assert webserver.create_app_from_workspace_process_context is (
        create_app_from_workspace_process_context
    )


def test_dagster_answers_to_no_route_that_the_guard_does_not_know():
    routes = DagsterWebserver.__new__(DagsterWebserver)
    routes._app_path_prefix = ""
    found = routes.build_routes()
    plain = {route.path for route in found if not isinstance(route, Mount)}
    static = {route.path for route in found if getattr(route, "name", "") == "root_static"}
    assert plain - static == ROUTES
    closed = {path.split("/")[1] for path in ROUTES if path.startswith("/report")}
    assert closed == set(guard.REPORTS)
