package cli

import (
	"fmt"
	"os/exec"
	"strings"
)

// The oldest version of Node that runs TypeScript without a flag. Of Node 23, that is 23.6.
const (
	nodeMajor = 22
	nodeMinor = 18
)

// checkNode returns an error if Node is missing or too old for a TypeScript
// plugin. look finds a program as exec.LookPath does; version returns the version
// of Node at a path. The error says what to install instead.
func checkNode(look func(string) (string, error), version func(path string) (string, error)) error {
	const need = "a TypeScript plugin needs Node 22.18 or newer"
	const instead = "install Node, or use --lang python, go or command"
	path, err := look("node")
	if err != nil {
		return fmt.Errorf("%s, but node is not in PATH; %s", need, instead)
	}
	found, err := version(path)
	if err != nil {
		return fmt.Errorf("%s, but %s --version failed: %w; %s", need, path, err, instead)
	}
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimSpace(found), "v%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("%s, but %s reports version %q; %s", need, path, strings.TrimSpace(found), instead)
	}
	if major < nodeMajor || major == nodeMajor && minor < nodeMinor || major == 23 && minor < 6 {
		return fmt.Errorf("%s, but %s is %s; %s", need, path, strings.TrimSpace(found), instead)
	}
	return nil
}

// nodeVersion runs node --version.
func nodeVersion(path string) (string, error) {
	out, err := exec.Command(path, "--version").Output()
	return string(out), err
}
