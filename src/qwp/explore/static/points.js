// Points and lines in WebGL 2, in buffers of positions, colours and sizes; panning changes only two uniforms.

const POINT = `#version 300 es
precision highp float;
layout(location = 0) in vec2 place;
layout(location = 1) in vec4 color;
layout(location = 2) in float size;
uniform vec4 view;  // scale x, scale y, shift x, shift y
uniform float unit;
out vec4 tint;
void main() {
  gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0);
  gl_PointSize = size * unit;
  tint = color;
}`;
const ROUND = `#version 300 es
precision mediump float;
in vec4 tint;
out vec4 pixel;
void main() {
  vec2 from = gl_PointCoord - 0.5;
  if (dot(from, from) > 0.25) discard;
  pixel = vec4(tint.rgb * tint.a, tint.a);
}`;
const LINE = `#version 300 es
layout(location = 0) in vec2 place;
uniform vec4 view;
void main() { gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0); }`;
const PLAIN = `#version 300 es
precision mediump float;
uniform vec4 tint;
out vec4 pixel;
void main() { pixel = vec4(tint.rgb * tint.a, tint.a); }`;

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made) || "the shaders cannot be used");
  return made;
}

/** Draws on a canvas; throws if the browser has no WebGL 2. */
export class Points {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true, powerPreference: "high-performance" });
    if (!gl) throw new Error("this browser has no WebGL 2, which the map is drawn with");
    this.gl = gl;
    this.canvas = canvas;
    this.points = program(gl, POINT, ROUND);
    this.lines = program(gl, LINE, PLAIN);
    this.at = { points: {}, lines: {} };
    for (const [name, uniforms] of [["points", ["view", "unit"]], ["lines", ["view", "tint"]]]) {
      for (const uniform of uniforms) this.at[name][uniform] = gl.getUniformLocation(this[name], uniform);
    }
    this.buffers = { place: gl.createBuffer(), color: gl.createBuffer(), size: gl.createBuffer(), line: gl.createBuffer(), order: gl.createBuffer() };
    this.count = 0;
    this.lineCount = 0;
    this.pointArray = this.vertices([["place", 2, gl.FLOAT, false], ["color", 4, gl.UNSIGNED_BYTE, true], ["size", 1, gl.FLOAT, false]]);
    this.lineArray = this.vertices([["line", 2, gl.FLOAT, false]]);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  vertices(parts) {
    const { gl } = this, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    parts.forEach(([name, size, type, whole], at) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, type, whole, 0, 0);
    });
    gl.bindVertexArray(null);
    return array;
  }

  fill(name, values, often = false) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, often ? gl.DYNAMIC_DRAW : gl.STATIC_DRAW);
  }

  /** Sets positions (x, y, x, y, ...), Float32Array. */
  setPlaces(values) { this.count = values.length / 2; this.fill("place", values); }
  /** Sets which point is drawn when, Uint32Array: the last one is on top. */
  setOrder(values) {
    const { gl } = this;
    gl.bindVertexArray(this.pointArray);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
  }
  /** Sets colours (r, g, b, a, ...), Uint8Array, and sizes in units, Float32Array. */
  setLooks(colors, sizes) { this.fill("color", colors); this.fill("size", sizes); }
  /** Sets the ends of lines (x, y, x, y, ...), Float32Array. */
  setLines(values, length) { this.lineCount = length / 2; this.fill("line", values.subarray(0, length), true); }

  /** Resizes the canvas to its size on the page, and returns the device pixels per CSS pixel. */
  resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio)), height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) { this.canvas.width = width; this.canvas.height = height; }
    this.gl.viewport(0, 0, width, height);
    return ratio;
  }

  /** Draws. view: scale and shift into clip space; unit: pixels of a point of size one; tint: colour of lines, 0 to 1. */
  draw(view, unit, tint) {
    const { gl } = this;
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (this.lineCount) {
      gl.useProgram(this.lines);
      gl.uniform4fv(this.at.lines.view, view);
      gl.uniform4fv(this.at.lines.tint, tint);
      gl.bindVertexArray(this.lineArray);
      gl.drawArrays(gl.LINES, 0, this.lineCount);
    }
    gl.useProgram(this.points);
    gl.uniform4fv(this.at.points.view, view);
    gl.uniform1f(this.at.points.unit, unit);
    gl.bindVertexArray(this.pointArray);
    gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
  }

  close() { this.gl.getExtension("WEBGL_lose_context")?.loseContext(); }
}
