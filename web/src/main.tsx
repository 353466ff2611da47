/** Starts the dashboard. */
import { options, render, type VNode } from 'preact';
import { visible } from './base/visible.ts';
import { App } from './shell/app.tsx';
import { boot } from './shell/boot.ts';
import './style.css';

/** The attributes that are there to be read; the others are values, and are kept as they are. */
const READ_OUT = ['title', 'aria-label'];
const shown = (child: unknown): unknown =>
  typeof child === 'string' ? visible(child) : Array.isArray(child) ? child.map(shown) : child;

// For whatever is shown, wherever that is: nobody has to think of it.
const before = options.vnode;
options.vnode = (vnode: VNode) => {
  if (typeof vnode.type === 'string') {
    const props = vnode.props as Record<string, unknown>;
    props.children = shown(props.children);
    for (const name of READ_OUT) if (typeof props[name] === 'string') props[name] = visible(props[name]);
  }
  before?.(vnode);
};

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
void boot();
