package main

// projects are those that are run. Six are in Go, four in JavaScript, five in C, three in Python, and one each in Rust, Perl and
// Java.
var projects = []project{
	goModule("cobra", "github.com/spf13/cobra@v1.8.1"),
	goModule("chi", "github.com/go-chi/chi/v5@v5.1.0"),
	goModule("gotoml", "github.com/pelletier/go-toml/v2@v2.2.3"),
	goModule("websocket", "github.com/gorilla/websocket@v1.5.3"),
	goModule("toml", "github.com/BurntSushi/toml@v1.4.0"),
	goModule("mux", "github.com/gorilla/mux@v1.8.1"),

	{
		name: "vitest",
		get: `npm create -y vite@6 . -- --template vanilla-ts >/dev/null && npm install --silent --cache .npm --omit-lockfile-registry-resolved=false && npm install --silent --cache .npm --omit-lockfile-registry-resolved=false -D vitest@3 prettier@3
cat > src/counter.test.ts <<'END'
import { expect, it } from "vitest";
it("adds", () => expect(1 + 1).toBe(2));
END
rm -rf node_modules && echo .npm >> .gitignore`,
		commands: append([]string{npmInstall, "npx vitest run", "npx tsc --noEmit", "npm run build", "npx prettier --write src >/dev/null"}, gitWork...),
	},
	npmPackage("minimist", "minimist@1.2.8", "npm run tests-only"),
	{
		name:     "vite",
		get:      "npm create -y vite@6 . -- --template react-ts >/dev/null && npm install --silent --cache .npm --omit-lockfile-registry-resolved=false && rm -rf node_modules && echo .npm >> .gitignore",
		commands: append([]string{npmInstall, "npm run build", "npm run lint", "npx tsc -b", "npx vite --version", serves}, gitWork...),
	},
	{
		name: "express",
		get: `npm init -y >/dev/null && npm install --silent --cache .npm --omit-lockfile-registry-resolved=false express@4 mocha@10 supertest@7 && printf 'node_modules\n.npm\n' > .gitignore
cat > app.js <<'END'
const app = require("express")();
app.get("/", (req, res) => res.json({ ok: true }));
module.exports = app;
END
mkdir test && cat > test/app.js <<'END'
const request = require("supertest");
it("answers", () => request(require("../app")).get("/").expect(200, { ok: true }));
END
npm pkg set scripts.test=mocha && rm -rf node_modules`,
		commands: append([]string{npmInstall, "npm test", "node -e 'require(\"./app\").listen(8123, () => process.exit(0))'", "npm ls --depth=0", "npm pack --dry-run"}, gitWork...),
	},

	debianSource("zlib", "zlib", "./configure", "make -j2", "make test"),
	debianSource("bzip2", "bzip2", "make", "make check"),
	debianSource("lua", "lua5.4", "make linux", "src/lua -e 'print(1 + 1)'"),
	debianSource("less", "less", "./configure", "make -j2", "./less --version"),
	debianSource("libyaml", "libyaml", "gcc -Iinclude -DYAML_VERSION_STRING='\"0\"' -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 -c src/*.c", "ar rcs libyaml.a *.o", "gcc -Iinclude tests/run-scanner.c libyaml.a -o run-scanner && ./run-scanner tests/*.c"),

	wheels.debianSource("toolz", "toolz", pipInstall, "cd /tmp && \"$OLDPWD\"/.venv/bin/python -c 'import toolz; print(toolz.__file__)' | grep venv", "/usr/bin/python3 -m pytest -q toolz", "python3 -m compileall -q toolz"),
	debianSource("parsedatetime", "parsedatetime", "/usr/bin/python3 -m pytest -q tests", "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(len, [[1], [2]]))'"),
	debianSource("docopt", "docopt", "/usr/bin/python3 -m pytest -q test_docopt.py", "PYTHONPATH=. python3 examples/naval_fate.py ship new a"),

	crates.debianSource("fnv", "rust-fnv", "cargo fetch --offline", "cargo build --offline", "cargo test --offline", "cargo doc --offline --no-deps"),
	debianSource("trytiny", "libtry-tiny-perl", "perl Makefile.PL", "make", "make test"),
	debianSource("commonslang", "libcommons-lang3-java", "javac -nowarn -encoding UTF-8 -d out $(find src/main -name '*.java')", "jar cf lang.jar -C out .", "jar tf lang.jar > classes"),
}

// npmInstall installs the dependencies from a cache of npm in the workspace: that of the user is not in the sandbox.
const npmInstall = "npm ci --offline --no-audit --cache .npm"

// pipInstall makes a virtual environment with the packages in the directory wheels.
const pipInstall = "python3 -m venv .venv && .venv/bin/pip install -q --no-index --find-links wheels toolz"

// The dependencies that the agent installs: a wheel, and crates of Debian's package librust-serde-json-dev.
const (
	wheels dependencies = `printf '.venv\n' >> .gitignore
/usr/bin/python3 -m pip wheel -q --no-deps --no-build-isolation -w wheels .`
	crates dependencies = `mkdir .cargo
printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n' > .cargo/config.toml
cargo add -q serde_json@1
grep serde_json Cargo.toml
printf 'target\n' >> .gitignore`
)

// serves starts a development server, asks it for its page and stops it.
const serves = "npx vite --port 8124 --host 127.0.0.1 >vite.log 2>&1 & for i in $(seq 100); do curl -sf http://127.0.0.1:8124/ | grep -q root && answers=yes && break; sleep 0.1; done; kill $!; grep ready vite.log && [ \"$answers\" ]"

// npmPackage is a package of npm that comes with its tests. The agent installs its dependencies from the cache.
func npmPackage(name, spec string, commands ...string) project {
	return project{
		name:     name,
		get:      "npm pack --silent " + spec + " >/dev/null && tar xf *.tgz --no-same-owner --strip-components=1 && rm *.tgz && printf 'node_modules\\n.npm\\n' > .gitignore && npm install --silent --cache .npm --omit-lockfile-registry-resolved=false --no-audit --ignore-scripts --legacy-peer-deps && rm -rf node_modules",
		commands: append(append([]string{npmInstall + " --ignore-scripts --legacy-peer-deps"}, commands...), gitWork...),
	}
}
