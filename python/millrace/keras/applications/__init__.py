# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.applications: models for ImageNet. Weights are read from files; none is downloaded."""

from millrace.keras.applications import (
    densenet,
    imagenet_utils,
    inception_resnet_v2,
    inception_v3,
    mobilenet,
    mobilenet_v2,
    nasnet,
    resnet,
    resnet_v2,
    vgg16,
    vgg19,
    xception,
)
from millrace.keras.applications import resnet as resnet50
from millrace.keras.applications.densenet import DenseNet121, DenseNet169, DenseNet201
from millrace.keras.applications.inception_resnet_v2 import InceptionResNetV2
from millrace.keras.applications.inception_v3 import InceptionV3
from millrace.keras.applications.mobilenet import MobileNet
from millrace.keras.applications.mobilenet_v2 import MobileNetV2
from millrace.keras.applications.nasnet import NASNetLarge, NASNetMobile
from millrace.keras.applications.resnet import ResNet50, ResNet101, ResNet152
from millrace.keras.applications.resnet_v2 import ResNet50V2, ResNet101V2, ResNet152V2
from millrace.keras.applications.vgg import VGG16, VGG19
from millrace.keras.applications.xception import Xception
