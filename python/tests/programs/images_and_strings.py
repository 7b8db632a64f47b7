# SPDX-License-Identifier: Apache-2.0
"""Images resized and recoloured, boxes chosen, strings split, joined and decoded, files read."""
import os
import tempfile
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(16)
photo = tf.constant(rng.randint(0, 255, [6, 5, 3]).astype(np.uint8))
batch = tf.constant(rng.rand(2, 4, 4, 3).astype(np.float32))
for method in (tf.image.ResizeMethod.BILINEAR, tf.image.ResizeMethod.NEAREST_NEIGHBOR, tf.image.ResizeMethod.BICUBIC, tf.image.ResizeMethod.AREA):
    resized = tf.image.resize_images(photo, [9, 4], method)
    with tf.Session() as sess:
        print(method, resized.dtype.name, resized.get_shape().as_list(), np.round(sess.run(resized).astype(np.float64).mean(), 2))
up = tf.image.resize_bilinear(batch, [8, 8], align_corners=True)
grad = tf.gradients(tf.reduce_sum(up * up), batch)[0]
near = tf.gradients(tf.reduce_sum(tf.image.resize_nearest_neighbor(batch, [7, 3]) ** 2), batch)[0]
colours = [tf.image.adjust_hue(photo, 0.2), tf.image.adjust_saturation(photo, 0.5), tf.image.adjust_contrast(photo, 2.0),
           tf.image.adjust_brightness(photo, 0.1), tf.image.rgb_to_grayscale(photo), tf.image.flip_left_right(photo)]
hsv = tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(batch))
boxes = tf.constant([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 0, 0.9, 1.0]], tf.float32)
kept = tf.image.non_max_suppression(boxes, tf.constant([0.9, 0.75, 0.6, 0.95]), 3, iou_threshold=0.5)
words = tf.string_split(["the quick brown", "fox"])
dense = tf.sparse_tensor_to_dense(words, default_value="-")
joined = tf.reduce_join(dense, 1, separator="+")
path = os.path.join(tempfile.mkdtemp(), "below", "numbers.bin")
write = tf.write_file(path, np.arange(4, dtype=np.int16).tobytes())
read = tf.decode_raw(tf.read_file(path), tf.int16)
with tf.Session() as sess:
    print(np.round(sess.run(grad).sum(), 2), np.round(sess.run(near).sum(), 2), np.abs(sess.run(hsv) - sess.run(batch)).max() < 1e-5)
    for c in sess.run(colours):
        print(c.dtype, c.shape, int(c.astype(np.int64).sum()))
    print(sess.run(kept).tolist(), sess.run(joined).tolist(), sess.run(words).dense_shape.tolist())
    sess.run(write)
    print(sess.run(read).tolist(), sess.run(tf.string_to_number(["1.5", "-2"])).tolist(), sess.run(tf.as_string([3, 4])).tolist())
    print(sess.run(tf.decode_base64(tf.encode_base64(["hello"]))).tolist(), sess.run(tf.substr("hello", 1, 3)), sess.run(tf.string_join(["a", "b"], "-")))
    try:
        sess.run(tf.read_file("/nowhere"))
    except tf.errors.NotFoundError:
        print("not found")
