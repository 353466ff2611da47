/** A fingerprint to tell contents apart: 16 hexadecimal digits (FNV-1a, 64 bits). Not safe against an adversary. */
export function hashText(text: string): string {
  // 64 bits as four 16-bit limbs: the prime is 2^40 + 0x1b3, so a product is a few small ones and a shift.
  let [a, b, c, d] = [0x2325, 0x8422, 0x9ce4, 0xcbf2]; // the least significant first
  for (let i = 0; i < text.length; i += 1) {
    a ^= text.charCodeAt(i);
    const low = a * 0x1b3;
    const second = b * 0x1b3 + (low >>> 16);
    const third = c * 0x1b3 + (a << 8) + (second >>> 16);
    const fourth = d * 0x1b3 + (b << 8) + (third >>> 16);
    [a, b, c, d] = [low & 0xffff, second & 0xffff, third & 0xffff, fourth & 0xffff];
  }
  return [d, c, b, a].map((limb) => limb.toString(16).padStart(4, '0')).join('');
}
