"""What the nights of snapshots share: a source that changes, a bank, and what must hold of images."""
import json, pathlib, random, shutil, subprocess, sys, time


class Images:
    """A source of 800 names in 20 folders, and images of it, made by the program `homing`."""

    def __init__(self, homing, folder, seed):
        self.homing, self.seed, self.moment = homing, seed, 0
        self.src, self.bank, self.out = (folder / name for name in ["src", "bank", "out"])
        shutil.rmtree(folder, ignore_errors=True)
        self.src.mkdir(parents=True)
        self.bank.mkdir()
        random.seed(seed)
        self.known, self.finished, self.unfinished, self.resumed = set(), 0, 0, 0

    def first(self):
        """Makes the first image; the seconds that it took."""
        for _ in range(6):
            self.change()
        begun = time.monotonic()
        self.say(str(self.src))
        self.known = {image["name"] for image in self.listed()["images"]}
        return time.monotonic() - begun

    def command(self, *words):
        return [self.homing, "snapshot", *words, "--to", f"localhost:{self.bank}"]

    def wrong(self, *what):
        sys.exit(f"seed {self.seed}, moment {self.moment}: {' '.join(map(str, what))}")

    def say(self, *words):
        """Runs homing snapshot; its output where it ended with 0."""
        said = subprocess.run(self.command(*words), capture_output=True)
        if said.returncode != 0:
            self.wrong(words, said.stdout.decode(), said.stderr.decode())
        return said.stdout

    def listed(self):
        return json.loads(self.say("list", "src", "--json"))["vaults"][0]["holds"]

    def begin(self):
        """Changes the source, and begins an image that somebody is going to end."""
        self.change()
        self.moment += 1
        quiet = subprocess.DEVNULL
        return subprocess.Popen(self.command(str(self.src)), stdout=quiet, stderr=quiet, start_new_session=True)

    def change(self):
        for _ in range(40):
            path = self.src / f"d{random.randrange(20)}" / f"f{random.randrange(40)}"
            path.parent.mkdir(exist_ok=True)
            if path.exists() and random.random() < 0.2:
                path.unlink()
            else:
                path.write_bytes(random.randbytes(random.choice([0, 100, 5000, 400_000])))

    def must_be_the_source(self, tree, what):
        words = ["rsync", "-aHAXnci", "--numeric-ids", "--delete", "--omit-dir-times", f"{self.src}/", f"{tree}/"]
        differs = subprocess.run(words, capture_output=True, check=True).stdout
        if differs:
            self.wrong(what, "is not what was copied:", differs.decode(errors="replace"))

    def after(self, how):
        """Finished images are all there, and a new one restores as the source is; sometimes one is made then."""
        # Images are named by the second.
        time.sleep(1.1)
        now = self.listed()
        names = {image["name"] for image in now["images"]}
        if not self.known <= names:
            self.wrong("of", self.known, "some are lost:", now)
        for image in now["images"]:
            if image["name"] not in self.known:
                self.finished += 1
                shutil.rmtree(self.out, ignore_errors=True)
                self.say("restore", "src", "--at", image["name"], "--into", str(self.out))
                if image["status"] != "success":
                    self.wrong(how, image)
                self.must_be_the_source(self.out, (how, image))
        self.known |= names
        self.unfinished += bool(now["unfinished"])
        if random.random() < 0.4:
            made = json.loads(self.say(str(self.src), "--json"))["made"]
            self.known.add(made["image"])
            self.resumed += made["resumed"]
            self.must_be_the_source(self.bank / "src" / made["image"] / "tree", (how, made))
            time.sleep(1.1)

    def end(self, what):
        for name in sorted(self.known):
            self.say("verify", "src", "--at", name, "--files", "1000000")
        print(f"{what}, seed {self.seed}: {self.moment} moments, {self.finished} images finished all the same, "
              f"{self.unfinished} times one was left unfinished, {self.resumed} gone on with, {len(self.known)} images "
              "verified whole")


def words(doc, more=()):
    """The program, the folder, how many moments, the seed, and what else was said."""
    if len(sys.argv) < 3:
        sys.exit(doc)
    said = sys.argv[3:] + [None] * 2
    return (str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve(), int(said[0] or 50),
            int(said[1] or 26), sys.argv[5:] or list(more))
