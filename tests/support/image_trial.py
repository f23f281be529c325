"""Image `local` of `deploy/Dockerfile`, built without a daemon or a registry of images: `python image_trial.py`.

It needs root, Debian's packages `buildah` and `debootstrap`, and this Python in the version of the images. The images that the
Dockerfile begins with are made here: Debian, by debootstrap, with this Python in `/usr/local`; the one to compile in has gcc, too.
Then `local` is built and runs a pipeline of the shop's messages as its own user, with all but the volume and `/tmp` read-only.
It is a chroot, not a container: no limits, no network of its own, no Docker, no Kubernetes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
# What Python's own modules link.
PACKAGES = "ca-certificates libbz2-1.0 libexpat1 libffi8 liblzma5 libncursesw6 libreadline8 libsqlite3-0 libssl3 libuuid1 zlib1g"
COMPILER = "apt-get update && apt-get install --yes --no-install-recommends g++ gcc libc6-dev"
# What this machine may need in order to reach package registries.
COPIED = ("etc/ssl/certs/ca-certificates.crt", "etc/pip.conf", "etc/resolv.conf")
VARIABLES = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
# Those that buildah sets by itself may be higher than what root may set here.
BOUNDS = ("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000")
READ_ONLY = """
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
if touch "$1/x" 2> /dev/null; then exit 9; fi
mount -t tmpfs tmpfs "$1/tmp"
mount --bind "$2" "$1/data"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
user=$3 image=$1
shift 3
exec chroot --userspec "$user:$user" "$image" sh -euc 'cd /data; test "$(id -u)" != 0; exec "$@"' sh "$@"
"""
CONFIGURATION = """\
state = "/data/state"
format = "canal"
run = "local"

[source]
files = "/data/in"

[lake]
delta = "/data/lake"
"""


class Builder:
    """Builds and runs images that are kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        places = ["--root", f"{folder}/store", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]
        self._buildah = ["buildah", *places]
        self._variables = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(folder)}

    def do(self, *words: object) -> str:
        """Run a command of buildah's, and return what it prints."""
        command = [*self._buildah, *map(str, words)]
        done = subprocess.run(command, env=self._variables, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    def image(self, name: str, base: str, added: Path | None = None, where: str = "/", run: str | None = None) -> None:
        """Make an image of another one, with files that are added, or by a command."""
        made = self.do("from", "--pull-never", base)
        if added is not None:
            self.do("add", "--quiet", made, added, where)
        if run is not None:
            self.do("run", made, "--", "sh", "-ec", run)
        settings = (word for one in VARIABLES.items() for word in ("--env", "=".join(one)))
        self.do("config", *settings, made)
        self.do("commit", "--quiet", "--rm", made, f"docker.io/library/{name}")

    def build(self, target: str) -> None:
        """Build a target of the Dockerfile."""
        self.do("bud", "--pull-never", *BOUNDS, "--file", DOCKERFILE, "--target", target, "--tag", target, ".")

    def run(self, image: str, volume: Path, *command: str) -> None:
        """Run a command in an image that cannot be written to, as the user of the image."""
        made = self.do("from", "--pull-never", image)
        settings = json.loads(self.do("inspect", "--type", "image", image))["OCIv1"]["config"]
        user, variables = settings["User"], dict(one.split("=", 1) for one in settings["Env"])
        place = self.do("mount", made)
        owner = Path(place, "data").stat()
        assert str(owner.st_uid) == user, owner
        subprocess.run(["chown", "-R", f"{user}:{user}", volume], check=True)
        script = ["unshare", "--mount", "sh", "-euc", READ_ONLY, "sh", place, volume, user, *command]
        subprocess.run(script, env={**variables, "HOME": "/data"}, check=True)
        self.do("rm", made)


def make_base(folder: Path) -> None:
    """Make a root file system of Debian's with this Python."""
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES.replace(' ', ',')}", "bookworm", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in COPIED:
        if Path("/", name).exists():
            shutil.copy(Path("/", name), folder / name)
    ignored = shutil.ignore_patterns("site-packages", "test", "__pycache__", "share")
    shutil.copytree(sys.base_prefix, folder / "usr/local", symlinks=True, ignore=ignored, dirs_exist_ok=True)
    for words in (["ldconfig"], ["python3", "-m", "ensurepip", "--default-pip"]):
        subprocess.run(["chroot", folder, *words], env=VARIABLES, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Build and run."""
    compiled, slim = sorted(set(re.findall(r"^FROM (python:\S+)", DOCKERFILE.read_text(), re.MULTILINE)), key=len)
    assert f"python:{sys.version_info.major}.{sys.version_info.minor}-" in compiled, sys.version
    with tempfile.TemporaryDirectory() as name:
        folder, volume = Path(name), Path(name, "volume")
        builder = Builder(folder)
        make_base(folder / "base")
        builder.image(slim, "scratch", folder / "base")
        builder.image(compiled, slim, run=COMPILER)
        builder.build("local")
        (volume / "in").mkdir(parents=True)
        shutil.copy(ROOT / "cdcavro/samples/canal/shop.jsonl", volume / "in")
        (volume / "sync.toml").write_text(CONFIGURATION)
        builder.run("local", volume, "cdcavro", "sync", "--config", "sync.toml", "--once")
        builder.run("local", volume, "cdcavro", "--version")


if __name__ == "__main__":
    main()
