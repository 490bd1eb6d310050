"""Checks what deploy/kubernetes has against the schemas of Kubernetes, strictly.

Prints JSON: what was checked, what is wrong, and the kinds that were skipped. The overlays are put
together as kustomize would, as far as they use it: resources, and JSON patches of one target.
"""
import copy, json, pathlib, sys
import yaml
import kubernetes_validate
from kubernetes_validate import utils

DEPLOY = pathlib.Path(sys.argv[1])
OLDEST = (1, 25)
# What no API server knows by itself.
SKIPPED = {
    "Kustomization": "read by kubectl, not by an API server",
    "PodMonitor": "a CRD of the Prometheus Operator",
    "NodeReadinessRule": "a CRD of the Node Readiness Controller",
    "NodeHealthCheck": "a CRD of medik8s",
}


def documents(file):
    found = [it for it in yaml.safe_load_all(file.read_text()) if it is not None]
    # kured-args.yaml is a list of arguments, and no document.
    return [it for it in found if isinstance(it, dict)]


def patched(document, operations):
    for operation in operations:
        *way, last = operation["path"].lstrip("/").split("/")
        place = document
        for step in way:
            step = step.replace("~1", "/").replace("~0", "~")
            place = place[int(step) if isinstance(place, list) else step]
        if isinstance(place, list):
            assert operation["op"] == "add" and last == "-", operation
            place.append(operation["value"])
        elif operation["op"] == "remove":
            del place[last]
        else:
            # What is replaced is there.
            assert operation["op"] == "add" or last in place, operation
            place[last] = operation["value"]


def built(folder):
    """All documents that a kustomization makes."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    all_of_it = []
    for resource in kustomization.get("resources", []):
        path = folder / resource
        all_of_it += built(path) if path.is_dir() else documents(path)
    all_of_it = copy.deepcopy(all_of_it)
    for patch in kustomization.get("patches", []):
        target = patch["target"]
        meant = [
            it for it in all_of_it
            if (it["kind"], it["metadata"]["name"]) == (target["kind"], target["name"])
        ]
        assert len(meant) == 1, f"{folder}: {target} is there {len(meant)} times"
        patched(meant[0], yaml.safe_load(patch["patch"]))
    return all_of_it


def main():
    versions = [it for it in dict.fromkeys(map(utils.major_minor, utils.all_versions()))
                if tuple(map(int, it.split("."))) >= OLDEST]
    files = {str(it.relative_to(DEPLOY)): documents(it) for it in sorted(DEPLOY.rglob("*.yaml"))}
    folders = [it.parent for it in sorted(DEPLOY.rglob("kustomization.yaml"))]
    files |= {f"{it.relative_to(DEPLOY)} built": built(it) for it in folders}
    checked, wrong, skipped = 0, [], set()
    for name, found in files.items():
        for document in found:
            kind = document["kind"]
            if kind in SKIPPED:
                skipped.add(kind)
                continue
            for version in versions:
                checked += 1
                try:
                    used = kubernetes_validate.validate(document, version, strict=True)
                    assert used == version, f"{used} in place of {version}"
                except Exception as error:
                    why = getattr(error, "message", str(error))
                    wrong.append(f"{name}: {kind} in {version}: {why}")
    misspelt = next(it for it in files["base built"] if it["kind"] == "DaemonSet")
    misspelt["spec"]["template"]["spec"]["hostPid"] = True
    try:
        kubernetes_validate.validate(misspelt, versions[-1], strict=True)
        wrong.append("a misspelt field is not noticed")
    except kubernetes_validate.ValidationError:
        pass
    print(json.dumps({"versions": versions, "checked": checked, "wrong": wrong,
                      "skipped": sorted(skipped), "known": sorted(SKIPPED)}))


main()
