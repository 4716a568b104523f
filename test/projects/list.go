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
		get: `npm create -y vite@6 . -- --template vanilla-ts >/dev/null && npm install --silent && npm install --silent -D vitest@3 prettier@3
cat > src/counter.test.ts <<'END'
import { expect, it } from "vitest";
it("adds", () => expect(1 + 1).toBe(2));
END`,
		commands: append([]string{"npx vitest run", "npx tsc --noEmit", "npm run build", "npx prettier --write src >/dev/null"}, gitWork...),
	},
	npmPackage("minimist", "minimist@1.2.8", "npm run tests-only"),
	{
		name:     "vite",
		get:      "npm create -y vite@6 . -- --template react-ts >/dev/null && npm install --silent",
		commands: append([]string{"npm run build", "npm run lint", "npx tsc -b", "npx vite --version", serves}, gitWork...),
	},
	{
		name: "express",
		get: `npm init -y >/dev/null && npm install --silent express@4 mocha@10 supertest@7 && printf node_modules > .gitignore
cat > app.js <<'END'
const app = require("express")();
app.get("/", (req, res) => res.json({ ok: true }));
module.exports = app;
END
mkdir test && cat > test/app.js <<'END'
const request = require("supertest");
it("answers", () => request(require("../app")).get("/").expect(200, { ok: true }));
END
npm pkg set scripts.test=mocha`,
		commands: append([]string{"npm test", "node -e 'require(\"./app\").listen(8123, () => process.exit(0))'", "npm ls --depth=0", "npm pack --dry-run"}, gitWork...),
	},

	debianSource("zlib", "zlib", "./configure", "make -j2", "make test"),
	debianSource("bzip2", "bzip2", "make", "make check"),
	debianSource("lua", "lua5.4", "make linux", "src/lua -e 'print(1 + 1)'"),
	debianSource("less", "less", "./configure", "make -j2", "./less --version"),
	debianSource("libyaml", "libyaml", "autoreconf -fi >/dev/null 2>&1 || cmake --version || gcc -Iinclude -DYAML_VERSION_STRING='\"0\"' -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 -c src/*.c", "ls *.o configure | head -3"),

	debianSource("toolz", "toolz", "python3 -m venv --without-pip .venv", "/usr/bin/python3 -m pytest -q toolz", "python3 -m compileall -q toolz"),
	debianSource("parsedatetime", "parsedatetime", "/usr/bin/python3 -m pytest -q tests", "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(len, [[1], [2]]))'"),
	debianSource("docopt", "docopt", "/usr/bin/python3 -m pytest -q test_docopt.py", "PYTHONPATH=. python3 examples/naval_fate.py ship new a"),

	debianSource("fnv", "rust-fnv", "cargo build --offline", "cargo test --offline", "cargo doc --offline --no-deps"),
	debianSource("trytiny", "libtry-tiny-perl", "perl Makefile.PL", "make", "make test"),
	debianSource("commonslang", "libcommons-lang3-java", "javac -nowarn -encoding UTF-8 -d out $(find src/main -name '*.java')", "jar cf lang.jar -C out .", "jar tf lang.jar | tail -3"),
}

// serves starts a development server, asks it for its page and stops it.
const serves = "npx vite --port 8124 --host 127.0.0.1 >vite.log 2>&1 & for i in $(seq 100); do curl -sf http://127.0.0.1:8124/ | grep -q root && break; sleep 0.1; done; kill $! ; grep -q ready vite.log"

// npmPackage is a package of npm that comes with its tests. Its dependencies are installed before the agent works.
func npmPackage(name, spec string, commands ...string) project {
	return project{
		name:     name,
		get:      "npm pack --silent " + spec + " >/dev/null && tar xf *.tgz --no-same-owner --strip-components=1 && rm *.tgz && printf node_modules > .gitignore && npm install --silent --no-audit --ignore-scripts --legacy-peer-deps",
		commands: append(commands, gitWork...),
	}
}
