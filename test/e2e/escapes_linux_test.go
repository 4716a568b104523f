package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// secretText is in every secret. Whatever prints it has escaped.
const secretText = "CANARY-7f3a"

// prison is a home outside of /tmp with secrets, servers that must not be reached, and a process that must not be touched.
type prison struct {
	*home
	reached atomic.Int32 // connections to the servers
	tcp     string       // port of the TCP server
	victim  *exec.Cmd
}

// newPrison makes the home and starts what must not be reached.
func newPrison(t *testing.T) *prison {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "lashd-escapes-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	h := newHome(t, nil)
	h.dir, h.user, h.work = filepath.Join(base, "data"), filepath.Join(base, "user"), filepath.Join(base, "user", "work")
	p := &prison{home: h}
	for name, text := range map[string]string{
		"data/keys.json": secretText, "user/.ssh/id_ed25519": secretText, "user/.aws/credentials": secretText, "user/.netrc": secretText, "user/.config/gh/hosts.yml": secretText,
		"user/.git-credentials": secretText, "user/.gnupg/private": secretText, "user/.bashrc": "# mine\n", "user/other/file": "other\n", "user/work/file": "work\n",
		"data/config.toml": "script = \"" + filepath.Join(base, "data", "script.json") + "\"\nsandbox = \"workspace\"\n", "data/script.json": `{"turns":[]}`,
	} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", p.work, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.listens("tcp", "127.0.0.1:0")
	p.listens("unix", filepath.Join(base, "user", "docker.sock"))
	p.listens("unix", "@lashd-escapes-"+filepath.Base(base))
	p.victim = exec.Command("sleep", "1000")
	p.victim.Env = append(os.Environ(), "SECRET="+secretText)
	if err := p.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.victim.Process.Kill(); p.victim.Wait() })
	return p
}

// listens counts the connections to a server.
func (p *prison) listens(network, address string) {
	p.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		p.tcp = fmt.Sprint(a.Port)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.reached.Add(1)
			io.WriteString(c, secretText+"\n")
			c.Close()
		}
	}()
}

// tries runs a script in the session as a command of the agent.
func (p *prison) tries(c *peer, id protocol.SessionID, script string) string {
	p.t.Helper()
	for old, by := range map[string]string{
		"$BASE": filepath.Dir(p.user), "$PORT": p.tcp, "$VICTIM": fmt.Sprint(p.victim.Process.Pid), "$ABSTRACT": "lashd-escapes-" + filepath.Base(filepath.Dir(p.user)),
		"$SOCKET": p.socket,
	} {
		script = strings.ReplaceAll(script, old, by)
	}
	args, err := json.Marshal(map[string]any{"command": script, "timeoutMs": 20_000})
	if err != nil {
		p.t.Fatal(err)
	}
	return ask[protocol.ToolCallResult](c, "tool/call", protocol.ToolCallParams{SessionID: id, Name: "shell", Args: args}).Output.Text
}

// python wraps a program of Python, so that each of its errors is an answer.
func python(program string) string { return "python3 - <<'END'\n" + program + "\nEND" }

// connecting is a Python program that connects a socket and prints what it reads.
func connecting(family, address string) string {
	return python("import socket\ns=socket.socket(socket." + family + ",socket.SOCK_STREAM)\ns.settimeout(2)\ns.connect(" + address + ")\nprint(s.recv(99))")
}

// calling is a Python program that makes a system call and prints its result with a word.
func calling(call string) string {
	return python("import ctypes\nl=ctypes.CDLL(None,use_errno=True)\nr=" + call + "\nprint('done' if r>=0 else 'refused')")
}

// escapes are scripts. Outside of a sandbox they do no lasting harm to the machine. In one, they must not print the canary, nor the word in never if there is one, nor change anything outside.
var escapes = []struct{ name, script, never string }{
	{"read a key of ssh", "cat ~/.ssh/id_ed25519", ""},
	{"read cloud credentials", "cat ~/.aws/credentials ~/.config/gh/hosts.yml ~/.git-credentials ~/.netrc", ""},
	{"list and read a hidden directory", "ls -A ~/.gnupg; cat ~/.gnupg/*", "private"},
	{"read lashd's keys", "cat $BASE/data/keys.json; cat $BASE/data/*", ""},
	{"read through a symbolic link", "ln -s ~/.ssh/id_ed25519 l && cat l; rm -f l", ""},
	{"read through a hard link", "ln ~/.netrc h && cat h; rm -f h", ""},
	{"read through /proc/self/root", "cat /proc/self/root$BASE/user/.netrc", ""},
	{"read through the root of another process", "cat /proc/$VICTIM/root$BASE/user/.netrc /proc/$VICTIM/cwd/../.netrc", ""},
	{"read the environment of another process", "tr '\\0' '\\n' < /proc/$VICTIM/environ | grep SECRET", "SECRET="},
	{"read the memory of another process", python("print(open('/proc/$VICTIM/mem','rb').read(1))"), "b'"},
	{"copy a hidden directory with tar", "tar cf - ~/.ssh | tr -d '\\0'", ""},
	{"read with io_uring", calling("l.syscall(425,8,ctypes.create_string_buffer(120))"), "done"},
	{"unmount what hides a secret", "umount ~/.ssh; umount -l ~/.netrc; cat ~/.ssh/id_ed25519 ~/.netrc", ""},
	{"mount something", "mkdir -p m && mount --bind m m && echo done && umount m", "done"},
	{"a user namespace", "unshare -Ur true && echo done", "done"},
	{"a user namespace with clone", calling("l.syscall(56,0x10000000|17,0,0,0,0)"), "done"},
	{"a mount namespace", "unshare -m true && echo done", "done"},
	{"the namespaces of another process", "nsenter -t $VICTIM -m true && echo done; nsenter -t 1 -m true && echo done", "done"},
	{"chroot", "chroot / true && echo done", "done"},
	{"write to another directory of the user", "echo $BASE > ~/other/file", ""},
	{"write a start-up file of the shell", "echo evil >> ~/.bashrc", ""},
	{"delete outside of the workspace", "rm -rf ~/other", ""},
	{"change modes outside", "chmod -R 777 ~/other ~/.ssh", ""},
	{"change times outside", "touch -d 2001-01-01 ~/other/file", ""},
	{"write to the system", "(: >> /etc/passwd) && echo done; mkdir /usr/lashd-test && echo done && rmdir /usr/lashd-test", "done"},
	{"write to kernel settings", "(: >> /proc/sys/kernel/core_pattern) && echo done", "done"},
	{"write to cgroups", "for d in /sys/fs/cgroup /sys/fs/cgroup/unified; do mkdir $d/lashd-test && echo done && rmdir $d/lashd-test; done", "done"},
	{"read a raw disk", "for d in /dev/[svx]d[a-z]; do head -c 1 $d && echo done; done", "done"},
	{"make a device", "mknod d b 8 0 && echo done", "done"},
	{"connect to a server of the host", connecting("AF_INET", "('127.0.0.1',$PORT)"), ""},
	{"connect by fast open", python("import socket\ns=socket.socket()\ns.sendto(b'x',0x20000000,('127.0.0.1',$PORT))\nprint(s.recv(99))"), ""},
	{"connect by MPTCP", python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_STREAM,262)\ns.settimeout(2)\ns.connect(('127.0.0.1',$PORT))\nprint(s.recv(99))"), ""},
	{"connect over IPv6", connecting("AF_INET6", "('::ffff:127.0.0.1',$PORT)"), ""},
	{"send by UDP", python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.sendto(b'x',('192.0.2.1',53))\nprint('done')"), "done"},
	{"look up a name", "getent hosts example.com && echo done", "done"},
	{"connect to a socket such as docker's", connecting("AF_UNIX", "'$BASE/user/docker.sock'"), ""},
	{"connect to the daemon", connecting("AF_UNIX", "'$SOCKET'"), ""},
	{"connect to an abstract socket", connecting("AF_UNIX", "'\\0$ABSTRACT'"), ""},
	{"a vsock socket", python("import socket\nsocket.socket(socket.AF_VSOCK,socket.SOCK_STREAM)\nprint('done')"), "done"},
	{"a packet socket", python("import socket\nsocket.socket(socket.AF_PACKET,socket.SOCK_RAW)\nprint('done')"), "done"},
	{"trace another process", calling("l.ptrace(16,$VICTIM,0,0)"), "done"},
	{"signal another process", "kill -9 $VICTIM", ""},
	{"limit another process", calling("l.syscall(302,$VICTIM,7,(ctypes.c_ulong*2)(1,1),None)"), "done"},
	{"slow another process down", "renice 19 -p $VICTIM", ""},
	{"the keyring of the kernel", calling("l.syscall(250,0,-3,1,0,0)"), "done"},
	{"kernel programs", calling("l.syscall(321,0,ctypes.create_string_buffer(64),64)"), "done"},
	{"page faults of its own", calling("l.syscall(323,1)"), "done"},
	{"performance events", calling("l.syscall(298,ctypes.create_string_buffer(128),0,-1,-1,0)"), "done"},
	{"type into the terminal", python("import fcntl\nfcntl.ioctl(0,0x5412,b'x')\nprint('done')"), "done"},
	{"use sudo or su", "sudo -n true && echo done; su -c true nobody && echo done", "done"},
	{"type into another terminal", "for t in /dev/pts/[0-9]*; do echo x > $t && echo done; done; ls /dev/pts", "done"},
	{"use a file that the daemon has open", "for f in /proc/self/fd/*; do case $f in */[0123]) ;; *) readlink $f | grep -v ^/proc && echo done;; esac; done", "done"},
	{"become another user", python("import os\nos.setuid(os.getuid()+7)\nprint('done')"), "done"},
	{"change git's configuration", "git config core.fsmonitor evil; echo evil >> .git/config", ""},
	{"plant a hook", "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; mv .git/hooks .git/x; mv .git g", ""},
	{"shared memory of System V", python("import ctypes\nl=ctypes.CDLL(None)\nprint('done' if any(l.shmat(i,None,0)!=-1 for i in range(64)) else 'none')"), "done"},
	{"a program that stays", "setsid sh -c 'sleep 2; echo evil > left' >/dev/null 2>&1 </dev/null & true", ""},
}

// TestEscapes runs scripts that try to leave the sandbox, as commands of an agent in the mode workspace.
func TestEscapes(t *testing.T) {
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	p := newPrison(t)
	p.serve()
	c := p.dial("")
	id := ask[protocol.SessionNewResult](c, "session/new", protocol.SessionNewParams{Cwd: p.work}).SessionID
	if got := p.tries(c, id, "cat file; echo x > made; cat ~/other/file"); !strings.HasPrefix(got, "work\nother\n") {
		t.Fatalf("an ordinary command does not work: %q", got)
	}
	before := p.outside()
	for _, e := range escapes {
		t.Run("part11/escapes "+e.name, func(t *testing.T) {
			out := p.tries(c, id, e.script)
			if strings.Contains(out, secretText) || e.never != "" && slices.Contains(strings.Fields(out), e.never) {
				t.Errorf("it escaped: %q", out)
			}
			if strings.Contains(out, "SyntaxError") || strings.Contains(out, "not found") && !strings.Contains(e.script, "sudo") {
				t.Errorf("the script itself fails: %q", out)
			}
			if n := p.reached.Swap(0); n != 0 {
				t.Errorf("it reached a server: %q", out)
			}
			if after := p.outside(); after != before {
				t.Errorf("it changed something outside: %q\nbefore %s\nafter %s", out, before, after)
			}
			if p.victim.ProcessState != nil || !alive(p.victim.Process.Pid) {
				t.Fatalf("it ended another process: %q", out)
			}
		})
	}
}

// alive reports whether a child of this process runs.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// outside describes the files that no command may change, with mode, time and content, and the priority of the victim.
func (p *prison) outside() string {
	var all strings.Builder
	for _, name := range []string{
		"user/other", "user/other/file", "user/.bashrc", "user/.ssh", "user/.ssh/id_ed25519", "user/work/.git", "user/work/.git/config", "user/work/.git/hooks", "user/work/.git/hooks/pre-commit",
	} {
		path := filepath.Join(filepath.Dir(p.user), name)
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintln(&all, name, "gone")
			continue
		}
		data := []byte(nil)
		if !info.IsDir() {
			data, _ = os.ReadFile(path)
			fmt.Fprintln(&all, name, info.Mode(), info.ModTime().Format(time.RFC3339Nano), string(data))
			continue
		}
		fmt.Fprintln(&all, name, info.Mode())
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.victim.Process.Pid))
	if fields := strings.Fields(string(stat)); len(fields) > 18 {
		fmt.Fprintln(&all, "nice", fields[18])
	}
	return all.String()
}
