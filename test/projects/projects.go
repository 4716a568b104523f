package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// project is a project with the commands that its developers type every day.
type project struct {
	name string
	// get is a shell script that puts the project into the current directory, which is empty, and its dependencies into the caches of this
	// user. It runs outside of lashd.
	get      string
	commands []string // of the agent
	config   string   // lines of config.toml
}

// fetch gets the project, unless its directory exists, and makes it a git repository with a commit.
func (p project) fetch(ctx context.Context, work string) error {
	if _, err := os.Stat(work + "/.git"); err == nil {
		return nil
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	const repository = "\nchmod -R u+w . && git init -q -b main && git config user.email me@example.com && git config user.name Me && git add -A && git commit -qm start >&2\n"
	cmd := exec.CommandContext(ctx, "bash", "-ec", p.get+repository)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out[max(0, len(out)-shown):])
	}
	return nil
}

// gitWork is what an agent does with git in each project.
var gitWork = []string{
	"git add -A && git commit -q --allow-empty -m built && git checkout -q -b work && echo change >> notes.txt && git add notes.txt && git commit -qm 'a change'",
	"git checkout -q main && echo other >> other.txt && git add other.txt && git commit -qm 'another change' && git checkout -q work && git rebase -q main && git log --oneline -3",
	"echo more >> notes.txt && git stash -q && git stash pop -q && git diff --stat && git worktree list && git tag v0 && git commit -qam more && git checkout -q main && git merge -q work && git branch -d work",
}

// goModule is a module of Go, with the modules that its tests need.
func goModule(name, module string) project {
	return project{
		name: name,
		get: fmt.Sprintf(`dir=$(cd / && go mod download -json %s | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
cp -r "$dir"/. . && chmod -R u+w . && go mod download && go test -run '^$' ./... >/dev/null`, module),
		commands: append([]string{"go mod download", "go build ./...", "go test ./...", "gofmt -l ."}, gitWork...),
	}
}

// debianSource is the source of a Debian package.
func debianSource(name, pkg string, commands ...string) project {
	return project{
		name: name,
		get: fmt.Sprintf(`lists=$(mktemp -d) && sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > "$lists/src.sources"
mkdir -p "$lists/lists/partial" && opts="-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$lists -o Dir::State::Lists=$lists/lists"
apt-get $opts update -qq 
apt-get $opts source -qq --download-only %s || ls *.orig.tar.?z* # the rest of the package is not needed
rm -f *.asc && tar xf *.orig.tar.* --no-same-owner --strip-components=1 && rm -rf *.orig.tar.* *.debian.tar.* *.dsc "$lists"`, pkg),
		commands: append(commands, gitWork...),
	}
}

// dependencies is a shell script that downloads the dependencies of a project.
type dependencies string

// debianSource is the source of a Debian package with these dependencies.
func (d dependencies) debianSource(name, pkg string, commands ...string) project {
	p := debianSource(name, pkg, commands...)
	p.get += "\n" + string(d)
	return p
}
