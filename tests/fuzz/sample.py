"""Seeds of the sample that are known not to be right, with what is open about each."""

OPEN: dict[int, str] = {
    47: "QLinearAveragePool of channels last gives 161 where onnxruntime gives 162",
}
