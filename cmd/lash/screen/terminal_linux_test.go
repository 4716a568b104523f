package screen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lashd/test/emulator"
)

// shell is an interactive bash in an emulator of 100 by 30, in which the program
// of the tests runs. log is what the program committed.
func shell(t *testing.T, name string) (x emulator.Terminal, log string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "PS1=$ ", "HISTFILE=", "SELF="+self, "SCREEN_LOG="+log, "GORACE=atexit_sleep_ms=0")
	x = emulator.Emulators[name](t, cmd, 100, 30)
	emulator.Shows(t, x, "$")
	x.Type("SCREEN_PROGRAM='1 60' $SELF\r")
	emulator.Shows(t, x, "─ finished")
	return x, log
}

// prompts waits for the prompt of the shell. What a test types before may still reach the program.
func prompts(t *testing.T, x emulator.Terminal) emulator.Picture {
	t.Helper()
	return emulator.Until(t, x, "a prompt", func(p emulator.Picture) bool { return strings.HasSuffix("\n"+p.All(), "\n$") })
}

// usable fails the test unless the shell has its terminal as before.
func usable(t *testing.T, x emulator.Terminal) {
	t.Helper()
	prompts(t, x)
	x.Type("stty -a | grep -o ' icanon.* echo '; echo sa''ne\r")
	p := emulator.Shows(t, x, "sane")
	if all := p.All(); !strings.Contains(all, " icanon ") || strings.Contains(all, "─ finished") || strings.Contains(all, "DATA RACE") {
		t.Errorf("the terminal is not as before:\n%s", all)
	}
	x.Type("printf '\\e[3G'; printf %s\\\\n one two\r")
	emulator.Shows(t, x, "one\ntwo\n")
}

// kill sends a signal to the program that writes the log.
func kill(t *testing.T, log string, signal syscall.Signal) {
	t.Helper()
	pid, err := os.ReadFile(log + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(string(pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(id, signal); err != nil {
		t.Fatal(err)
	}
}

func TestTerminalIsUsableAfterwards(t *testing.T) {
	for emulatorName := range emulator.Emulators {
		for what, end := range map[string]func(t *testing.T, x emulator.Terminal, log string){
			"SIGTERM": func(t *testing.T, _ emulator.Terminal, log string) { kill(t, log, syscall.SIGTERM) },
			"SIGHUP":  func(t *testing.T, _ emulator.Terminal, log string) { kill(t, log, syscall.SIGHUP) },
			"a panic": func(t *testing.T, x emulator.Terminal, _ string) {
				x.Type("\x10")
				emulator.Shows(t, x, "a panic of the test")
				if all := prompts(t, x).All(); strings.Contains(all, "DATA RACE") {
					t.Errorf("the terminal shows:\n%s", all)
				}
				x.Type("clear\r")
			},
			"Ctrl-Q": func(_ *testing.T, x emulator.Terminal, _ string) { x.Type("\x11") },
		} {
			t.Run(fmt.Sprintf("part/12 after %s in %s", what, emulatorName), func(t *testing.T) {
				x, log := shell(t, emulatorName)
				end(t, x, log)
				usable(t, x)
			})
		}
	}
}

func TestStopAndContinue(t *testing.T) {
	for name := range emulator.Emulators {
		t.Run("part/12 Ctrl-Z gives the terminal to the shell in "+name+", and fg paints the program in the new size", func(t *testing.T) {
			x, _ := shell(t, name)
			x.Type("draft\x1a")
			p := emulator.Shows(t, x, "Stopped")
			if strings.Contains(p.All(), "─ finished") {
				t.Errorf("the live area is left:\n%s", p.All())
			}
			usable(t, x)
			x.Resize(70, 20)
			x.Type("fg\r")
			p = emulator.Shows(t, x, "─ finished 70x20")
			if !strings.Contains(p.All(), "› draft") || strings.Count(p.All(), "─ finished") != 1 {
				t.Errorf("after fg:\n%s", p.All())
			}
			x.Type("!\r\x11")
			emulator.Shows(t, x, "› draft!\n")
			usable(t, x)
		})
		t.Run("part/12 after SIGSTOP and fg the program paints again in "+name, func(t *testing.T) {
			x, log := shell(t, name)
			kill(t, log, syscall.SIGSTOP)
			emulator.Shows(t, x, "Stopped")
			x.Type("echo bet''ween\r")
			emulator.Shows(t, x, "between\n")
			x.Type("fg\r")
			emulator.Until(t, x, "a frame below the shell's output", func(p emulator.Picture) bool {
				_, after, _ := strings.Cut(p.All(), "between\n")
				return strings.Contains(after, "─ finished 100x30")
			})
			x.Type("again\r\x11")
			p := emulator.Shows(t, x, "› again\n$")
			if strings.Count(p.All(), "─ finished") != 1 {
				t.Errorf("there is more than the frame from before the stop:\n%s", p.All())
			}
		})
	}
}

func TestProgramOnTheTerminal(t *testing.T) {
	for name := range emulator.Emulators {
		t.Run("part/12 an external editor has the terminal in "+name+" and the program paints afterwards", func(t *testing.T) {
			x, _ := shell(t, name)
			x.Type("draft\x05")
			p := emulator.Shows(t, x, "the other program")
			if strings.Contains(p.All(), "─ finished") {
				t.Errorf("the live area is left:\n%s", p.All())
			}
			x.Type("typed there\r")
			emulator.Shows(t, x, "it read typed there")
			p = emulator.Shows(t, x, "─ finished 100x30")
			if !strings.Contains(p.All(), "› draft") {
				t.Errorf("afterwards:\n%s", p.All())
			}
			x.Type("\x11")
			usable(t, x)
		})
	}
}
