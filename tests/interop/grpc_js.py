"""@grpc/grpc-js from npm, as package-lock.json says, in the build folder. Nothing is installed into the tree."""
import fcntl
import filecmp
import os
import shutil
import subprocess

import sandbox_wire as wire

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(wire.BUILD, "interop")
MODULES = os.path.join(FOLDER, "node_modules")
LOCK = "package-lock.json"
DONE = os.path.join(FOLDER, "installed")
CI = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]


def is_installed():
    """The lock file that was used is left behind at the end."""
    return os.path.exists(DONE) and filecmp.cmp(os.path.join(HERE, LOCK), DONE, shallow=False)


def install():
    """None, or why it cannot be had. What is there already is kept while the lock file is the same."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node or npm is missing"
    if is_installed():
        return None
    os.makedirs(FOLDER, exist_ok=True)
    if not os.access(FOLDER, os.W_OK):
        return f"{FOLDER} cannot be written"
    with open(os.path.join(FOLDER, "installing"), "w", encoding="utf-8") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if is_installed():
            return None
        for name in ("package.json", LOCK):
            shutil.copy(os.path.join(HERE, name), FOLDER)
        with open(os.path.join(FOLDER, "npm.log"), "w", encoding="utf-8") as log:
            try:
                subprocess.run(CI, cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=150, check=True)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as why:
                return f"npm could not install it: {why}"
        shutil.copy(os.path.join(HERE, LOCK), DONE)
    return None


MISSING = install()
