/**
 * A full-screen view that is redrawn in place on the terminal's alternate screen, which restores the old one at the
 * end.
 */

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_PAGE = '\u001b[J';

export type Screen = {
  size(): { readonly rows: number; readonly columns: number };
  /** At most as many lines as there are rows; each already fits its row. */
  draw(lines: readonly string[]): void;
  /** Gives the terminal back to the shell, as Ctrl-Z does where keys are not read one by one. */
  suspend(): void;
  leave(): void;
};

export function openScreen(out: NodeJS.WriteStream): Screen {
  let isLeft = false;
  let picture: readonly string[] = [];
  const draw = (lines: readonly string[]): void =>
    void out.write(`${HOME}${lines.map((line) => line + REST_OF_LINE).join('\r\n')}${REST_OF_PAGE}`);
  const enter = (): void => {
    process.on('SIGTSTP', suspend);
    out.write(ENTER);
    draw(picture);
  };
  // Ctrl-Z gives the terminal back to the shell as it was, and `fg` takes it again. It is the system that stops the
  // program: only where a shell could go on with it, which there is none of under `ssh -t` or in a container.
  const suspend = (): void => {
    const isRaw = process.stdin.isRaw === true;
    if (isRaw) process.stdin.setRawMode(false);
    out.write(LEAVE);
    process.off('SIGTSTP', suspend);
    process.kill(process.pid, 'SIGTSTP');
    if (isRaw) process.stdin.setRawMode(true);
    enter();
  };
  const leave = (): void => {
    if (isLeft) return;
    isLeft = true;
    out.write(LEAVE);
    process.off('exit', leave).off('SIGTSTP', suspend);
  };
  // Whatever ends the program, the terminal is given back as it was.
  process.on('exit', leave);
  enter();
  return {
    // A terminal that has not been told its size, as within a container or under `script`, says 0.
    size: () => ({ rows: out.rows || 24, columns: out.columns || 80 }),
    draw: (lines) => {
      picture = lines;
      draw(lines);
    },
    suspend,
    leave,
  };
}
